"""The state of a monitor in one JSON file: whole or not at all, and one writer at a time."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from caltest._version import __version__
from caltest.exceptions import InputError
from caltest.files.places import named, opened
from caltest.files.writing import locked, write_whole
from caltest.monitoring.bettors import Books

_SCHEMA = 3
_PARTS = ("schema", "options", "state")


def brief(text: str) -> str:
    """Return what a batch or a cluster is known by: 64 bits."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def packed(books: Books) -> str:
    """Return arrays as JSON holds them without rounding: base64 of NumPy's file of them."""
    file = io.BytesIO()
    np.savez(file, **books)  # type: ignore[arg-type]
    return base64.b64encode(file.getvalue()).decode()


def unpacked(kept: str) -> Books:
    """Return the arrays."""
    with np.load(io.BytesIO(base64.b64decode(kept))) as found:
        return dict(found)


def save(path: Path, options: Mapping[str, Any], state: Mapping[str, Any], known: str | None) -> str:
    """Write a state, and return its fingerprint; raise unless the file is still the one that is known.

    ``known`` is the fingerprint of what was loaded or saved before; None of a new state.
    """
    body = {"schema": _SCHEMA, "options": options, "state": state}
    whole = {"caltest monitor": __version__, "fingerprint": _fingerprint(body), **body}
    text = json.dumps(whole, indent=1, allow_nan=False) + "\n"
    with locked(path):
        there = _read(path)["fingerprint"] if path.exists() else None
        if there is not None and known is None:
            raise InputError(f"{path} is there already; load it to go on, or give another file.")
        if there not in (None, known):
            raise InputError(
                f"{path} was changed by someone else since this state was loaded or saved; load it, "
                "and take the batch in again."
            )
        write_whole({path: text})
    return str(whole["fingerprint"])


def load(path: Path) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Return the options, the state and the fingerprint of a file."""
    whole = _read(path)
    return whole["options"], whole["state"], whole["fingerprint"]


def _fingerprint(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _read(path: Path) -> dict[str, Any]:
    """Read a file that `save` wrote, and check that nobody else changed it."""
    with named(str(path)), opened(path, "JSON") as file:
        content = file.read()
    found: dict[str, Any] = {}
    try:
        found = json.loads(content)
        intact = _fingerprint({name: found[name] for name in _PARTS}) == found["fingerprint"]
        intact = intact and "caltest monitor" in found
    except (ValueError, KeyError, TypeError, RecursionError):
        intact = False
    if intact and found["schema"] != _SCHEMA:
        raise InputError(
            f"{path} is a state of version {found['schema']}, and this caltest reads {_SCHEMA}; use "
            "the one that wrote it."
        )
    if not intact:
        raise InputError(
            f"{path} is no state of a monitor, or was cut or changed; restore a copy of it, or begin "
            "a new state."
        )
    return found
