"""Wheel and sdist, each in clean environments with the newest and the oldest dependencies.

    python -m docs.tools.distribution             # builds to dist/, then tries both
    python -m docs.tools.distribution --only oldest

The oldest versions are the lower bounds of pyproject.toml. In every environment the known case of
`featurestep doctor` must come out right and the demo must write its figure.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

from .pages import ROOT

DIST = ROOT / "dist"
TRIALS = (("wheel", "newest"), ("sdist", "oldest"), ("wheel", "oldest"), ("sdist", "newest"))
_SMALL = ("--n", "300", "--seeds", "2")  # of the demo


def lower_bounds() -> list[str]:
    """Every dependency of the core at the oldest version that is allowed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = []
    for requirement in project["dependencies"]:
        match = re.fullmatch(r"([A-Za-z0-9_.-]+)>=([0-9.]+)(?:,<.*)?", requirement)
        if match is None:
            raise ValueError(f"dependency without a plain lower bound: {requirement}")
        found.append(f"{match[1]}=={match[2]}")
    return found


def build() -> dict[str, Path]:
    """Both distributions, made anew."""
    for old in DIST.glob("featurestep-*"):
        old.unlink()
    with tempfile.TemporaryDirectory() as folder:
        _run([sys.executable, "-m", "build", "--outdir", str(DIST), str(ROOT)], folder)
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    return {"wheel": wheel, "sdist": sdist}


def try_out(file: Path, oldest: bool) -> str:
    """Install into a clean environment and use it there; what was installed."""
    with tempfile.TemporaryDirectory() as folder:
        _run([sys.executable, "-m", "venv", folder + "/venv"], folder)
        python = folder + "/venv/bin/python"
        bounds = lower_bounds() if oldest else []
        _run([python, "-m", "pip", "install", "-q", str(file), *bounds], folder)
        command = folder + "/venv/bin/featurestep"
        _run([command, "doctor", "--seeds", "2"], folder)
        _run([command, "demo", *_SMALL, "--output", "demo"], folder)
        if not (Path(folder) / "demo" / "demo.png").stat().st_size:
            raise RuntimeError("the demo has drawn nothing")
        return _run([python, "-m", "pip", "list", "--format=freeze"], folder)


def _name(requirement: str) -> str:
    return requirement.partition("==")[0].lower().replace("_", "-")


def _run(command: Sequence[str], folder: str) -> str:
    """Run it in a folder of its own, so that nothing is found by accident; its output."""
    outside = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(command, cwd=folder, env=outside, capture_output=True, text=True)
    if done.returncode:
        tail = (done.stdout + done.stderr)[-3000:]
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}\n{tail}")
    return done.stdout


def main(arguments: Sequence[str] | None = None) -> None:
    """Build, then try every combination asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", choices=("newest", "oldest"), help="of the dependencies")
    chosen = parser.parse_args(arguments)
    files = build()
    for kind, age in TRIALS:
        if chosen.only not in (None, age):
            continue
        installed = try_out(files[kind], age == "oldest")
        core = set(map(_name, lower_bounds()))
        shown = [line for line in installed.split() if _name(line) in core]
        print(f"{files[kind].name}, {age}: {', '.join(shown)}", flush=True)


if __name__ == "__main__":
    main()
