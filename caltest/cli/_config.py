"""Options from a file: `[tool.caltest]` in pyproject.toml, or a file of one's own."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from caltest._arguments import closest, jobs
from caltest.exceptions import InputError
from caltest.files.places import is_file, named, opened

#: Turns a value into what an option takes, or raises; the first argument says whose value it is.
Check: TypeAlias = "Callable[[str, object], Any]"

_TABLE = "[tool.caltest]"
_MOST_BYTES = 10**6
_MOST_BITS = 256  # of a whole number; a seed may be long


@dataclass(frozen=True)
class Config:
    """What a file says of the options.

    Attributes
    ----------
    path
        The file; None if there is none.
    place
        Name of file and table, for messages; None without a file.
    values
        By the option's name, without its dashes.
    """

    path: Path | None
    place: str | None
    values: Mapping[str, Any]


def load_config(path: Path | None, checks: Mapping[str, Check]) -> Config:
    """Read the options of a file; without one, of the nearest pyproject.toml that has some.

    A file that has a table ``tool`` is read at ``[tool.caltest]``, any other one at its top. An
    option's name may be written with dashes or with underscores.

    Raises
    ------
    InputError
        If the file cannot be read, or an option is unknown or of the wrong kind.
    """
    if path is None:
        return _nearest(checks)
    table = _read(path)
    if "tool" not in table:
        return Config(path, str(path), _checked(str(path), table, checks))
    found = _own_table(table)
    if found is None:
        raise InputError(f"{path}: there is no table {_TABLE}; add it, or leave out --config.")
    return _config(path, found, checks)


def _nearest(checks: Mapping[str, Check]) -> Config:
    """Look in the working directory, then in its parents."""
    try:
        here = Path.cwd()
    except FileNotFoundError:  # it was removed
        return Config(None, None, {})
    for folder in (here, *here.parents):
        path = Path("pyproject.toml") if folder == here else folder / "pyproject.toml"
        found = _own_table(_read(path)) if is_file(path) else None
        if found is not None:
            return _config(path, found, checks)
    return Config(None, None, {})


def _config(path: Path, table: object, checks: Mapping[str, Check]) -> Config:
    place = f"{path} {_TABLE}"
    if not isinstance(table, dict):
        raise InputError(f"{path}: tool.caltest is {_toml(table)}, but must be a table, {_TABLE}.")
    return Config(path, place, _checked(place, table, checks))


def _own_table(table: dict[str, Any]) -> object | None:
    tools = table.get("tool")
    return tools.get("caltest") if isinstance(tools, dict) else None


def _read(path: Path) -> dict[str, Any]:
    if str(path) == os.devnull:  # how one asks for no options at all
        return {}
    with named(str(path)), opened(path, "TOML") as file:
        text = file.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise InputError(
                f"the configuration is larger than {_MOST_BYTES} bytes; give a smaller file."
            )
        return tomllib.loads(text.decode("utf-8-sig"))


def _checked(place: str, table: dict[str, Any], checks: Mapping[str, Check]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("_", "-")
        if name not in checks:
            close = closest(name, checks)
            meant = f" (is {close!r} meant?)" if close else ""
            raise InputError(
                f"{place}: there is no option {key!r}{meant}; the options are {', '.join(checks)}."
            )
        if name in values:
            raise InputError(f"{place}: the option {name!r} is given twice; give it once.")
        values[name] = checks[name](f"{place}: {key}", value)
    return values


def text(name: str, value: object) -> str:
    """Pass text."""
    if not isinstance(value, str):
        raise _wrong(name, value, "text, in quotes")
    return value


def texts(name: str, value: object) -> tuple[str, ...]:
    """Pass several texts, or make one of them several."""
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise _wrong(name, value, 'text, or a list of texts, such as ["a", "b"]')
    return tuple(value)


def number(name: str, value: object) -> float:
    """Pass a number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(name, value, "a number")
    try:
        return float(value)
    except OverflowError as error:
        raise InputError(f"{name} is too large a number; give a smaller one.") from error


def level(name: str, value: object) -> float:
    """Pass a number between 0 and 1."""
    found = number(name, value)
    if not 0 < found < 1:
        raise InputError(f"{name} is {found}; give a level between 0 and 1, such as 0.05.")
    return found


def whole(name: str, value: object, least: int | None = None) -> int:
    """Pass a whole number, not below ``least``."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong(name, value, "a whole number")
    if value.bit_length() > _MOST_BITS:
        raise InputError(f"{name} is too large a number; give a smaller one.")
    if least is not None and value < least:
        raise InputError(f"{name} is {value}; give a whole number from {least} on.")
    return value


def at_least(least: int) -> Check:
    """Pass whole numbers that are not below ``least``."""
    return partial(whole, least=least)


def cores(name: str, value: object) -> int:
    """Pass a number of workers."""
    return jobs(name, whole(name, value))


def one_of(*choices: str) -> Check:
    """Pass some texts alone."""

    def check(name: str, value: object) -> str:
        if value not in choices:
            raise InputError(f"{name} is {_toml(value)}; give {' or '.join(choices)}.")
        return str(value)

    return check


def path(name: str, value: object) -> Path:
    """Pass a path."""
    return value if isinstance(value, Path) else Path(text(name, value))


def _wrong(name: str, value: object, wanted: str) -> InputError:
    return InputError(f"{name} is {_toml(value)}, but must be {wanted}.")


def _toml(value: object) -> str:
    """Write a value as its file does, nearly."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except ValueError:  # it has thousands of digits
        return "a number of thousands of digits"
