"""A server with SmolLM2 on this machine, started once for all tests."""

import os
import pathlib
import re
import subprocess
import threading
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def binary() -> str:
    target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))
    return os.environ.get("MASKWRIGHT", f"{target}/release/maskwright")


def fixtures() -> pathlib.Path:
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(os.environ.get("MASKWRIGHT_FIXTURES") or f"{cache}/maskwright/fixtures")


class Server:
    """A running `maskwright serve`."""

    def __init__(self, *flags: str, key: str | None = "key"):
        model = fixtures() / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
        environment = {**os.environ, "MASKWRIGHT_OFFLINE": "1"}
        if key:
            environment["MASKWRIGHT_API_KEY"] = key
        self.key = key
        self.model = "SmolLM2-135M-Instruct.Q4_1"
        self.process = subprocess.Popen(
            [binary(), "serve", str(model), "--port", "0", "--max-tokens", "400", *flags],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.log: list[str] = []
        self.address = ""
        for line in self.process.stderr:
            self.log.append(line)
            found = re.search(r"listening on (http://\S+)", line)
            if found:
                self.address = found.group(1)
                break
        assert self.address, "".join(self.log)
        # A pipe that nobody empties would stop the server.
        threading.Thread(target=lambda: self.log.extend(self.process.stderr), daemon=True).start()

    def memory(self) -> int:
        """Resident memory, in kB; 0 where the system doesn't tell."""
        try:
            status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        except OSError:
            return 0
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1))

    def stop(self) -> int:
        self.process.terminate()
        try:
            return self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


@pytest.fixture(scope="session")
def server():
    server = Server()
    yield server
    assert server.stop() == 0
    text = "".join(server.log)
    assert "panicked" not in text, text
    assert "answered" in text, "requests are logged"
    for secret in ["France", server.key + '"', "population"]:
        assert secret not in text, f"{secret} was logged"


@pytest.fixture
def patience():
    """Waits for a condition, for a while."""

    def wait(condition, seconds=10.0):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "it didn't come"
            time.sleep(0.05)

    return wait
