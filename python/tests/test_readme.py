"""The examples of the package's page, each run where its host is installed."""

import importlib.util
import pathlib
import re
from typing import Any

import pytest

PAGE = (pathlib.Path(__file__).parent.parent / "README.md").read_text()
# A block says what it needs in a comment above it: <!-- needs: torch transformers -->
BLOCKS = re.findall(r"(?:<!-- needs: (.*?) -->\n)?```python\n(.*?)```", PAGE, re.DOTALL)
HEADINGS = [PAGE[: PAGE.index(code)].rsplit("\n#", 1)[1].split("\n")[0].strip("# ") for _, code in BLOCKS]


@pytest.mark.parametrize(("needs", "code"), BLOCKS, ids=HEADINGS)
def test_the_example_runs(
    needs: str, code: str, smollm2_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    for host in needs.split():
        if importlib.util.find_spec(host) is None:
            pytest.skip(f"{host} isn't installed")
    from conftest import fixture_path

    paths = {"model.gguf": smollm2_path, "tokenizer/": fixture_path("tokenizers/qwen3")}
    for name, path in paths.items():
        (tmp_path / name.strip("/")).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "python/README.md", "exec"), _names())


def _names() -> dict[str, Any]:
    return {"__name__": "__main__"}


def test_every_host_has_an_example() -> None:
    for host in ("transformers", "mlx", "llama_cpp", "vllm", "sglang"):
        assert f"maskwright.{host}" in PAGE
