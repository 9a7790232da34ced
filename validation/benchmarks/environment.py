"""The environment of the other packages: a virtual environment of their own."""

from __future__ import annotations

import os
import subprocess
import venv
from collections.abc import Callable
from pathlib import Path

from validation.benchmarks.peers import PACKAGES

FOLDER = Path(__file__).resolve().parents[2] / "build" / "peers"


def python_of(folder: Path) -> Path:
    """Return the Python of a virtual environment."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def made(folder: Path = FOLDER, say: Callable[[str], None] = print) -> tuple[Path, dict[str, str]]:
    """Make the environment where it is not there yet, and install what can be installed.

    One package after another: one that fails leaves the others, and its reason is returned. netcal
    needs PyTorch, which takes several gigabytes.

    Returns
    -------
    tuple
        The environment's Python, and the reasons of those that failed, by name.
    """
    python = python_of(folder)
    if not python.exists():
        say(f"making {folder}")
        venv.create(folder, with_pip=True)
    failed = {}
    for package in PACKAGES:
        say(f"installing {package}")
        command = [str(python), "-m", "pip", "install", "--quiet", "--no-input", package]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            failed[package] = f"cannot be installed: {(errors or ['no reason given'])[-1]}"[:200]
    return python, failed
