"""The environments of the other packages: each package has a virtual environment of its own."""

from __future__ import annotations

import os
import subprocess
import venv
from collections.abc import Callable, Iterable
from pathlib import Path

from validation.benchmarks.peers import PACKAGES

FOLDER = Path(__file__).resolve().parents[2] / "build" / "peers"


def python_of(folder: Path) -> Path:
    """Return the Python of a virtual environment."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def made(
    packages: Iterable[str] = PACKAGES, folder: Path = FOLDER, say: Callable[[str], None] = print
) -> tuple[dict[str, Path], dict[str, str]]:
    """Make environments where they are not there yet, and install what can be installed.

    A package that cannot be installed leaves the others. Some need PyTorch, of several gigabytes.

    Returns
    -------
    tuple
        Of each package its environment's Python, and the reasons of those that failed.
    """
    pythons, failed = {}, {}
    for package in packages:
        pythons[package] = python = python_of(folder / package)
        if python.exists():
            continue
        say(f"installing {package}")
        venv.create(folder / package, with_pip=True)
        command = [str(python), "-m", "pip", "install", "--quiet", "--no-input", package]
        command += PACKAGES[package]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            failed[package] = f"cannot be installed: {(errors or ['no reason given'])[-1]}"[:200]
            python.unlink(missing_ok=True)  # is tried again
    return pythons, failed
