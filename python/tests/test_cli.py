import pathlib
import subprocess
import sys


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "maskwright", *arguments],
        capture_output=True,
        text=True,
        check=False,
        input="",
    )


def test_the_module_is_the_command(tmp_path: pathlib.Path) -> None:
    assert run("--version").stdout.startswith("maskwright ")
    schema = tmp_path / "schema.json"
    schema.write_text('{"type": "text"}')
    checked = run("check", "--json-schema", str(schema))
    assert checked.returncode == 2
    assert "/type" in checked.stdout + checked.stderr
    assert run("no-such-command").returncode == 2


def test_the_script_replies_under_a_constraint(smollm2_path: pathlib.Path) -> None:
    script = pathlib.Path(sys.executable).with_name("maskwright")
    ran = subprocess.run(
        [script, "run", str(smollm2_path), "Yes or no?", "--choice", "yes", "--choice", "no"],
        capture_output=True,
        text=True,
        check=False,
        input="",
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() in ("yes", "no")
