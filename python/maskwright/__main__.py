"""The `maskwright` command; `python -m maskwright` is the same."""

import sys

from maskwright import _maskwright


def main() -> None:
    """Runs the command line of this process and exits."""
    sys.exit(_maskwright.main(["maskwright", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
