"""Options from a file: `[tool.caltest]` in pyproject.toml, or a file of one's own."""

from __future__ import annotations

import csv
import json
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from caltest._arguments import closest
from caltest._visible import quoted
from caltest.exceptions import InputError
from caltest.files.places import is_file, named, opened
from caltest.options import Option

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


def load_config(path: Path | None, options: Mapping[str, Option]) -> Config:
    """Read the options of a file; without one, of the nearest pyproject.toml that has some.

    A file that has a table ``tool`` is read at ``[tool.caltest]``, any other one at its top. An
    option's name may be written with dashes or with underscores.

    Raises
    ------
    InputError
        If the file cannot be read, or an option is unknown or of the wrong kind.
    """
    for each in _nearby() if path is None else [path]:
        table, place = _read(each), f"{each} {_TABLE}"
        if path is not None and "tool" not in table:
            return Config(path, str(path), _checked(str(path), table, options))
        tools = table.get("tool")
        found = tools.get("caltest") if isinstance(tools, dict) else None
        if isinstance(found, dict):
            return Config(each, place, _checked(place, found, options))
        if found is not None:
            raise InputError(f"{each}: tool.caltest is {_toml(found)}, but must be a table, {_TABLE}.")
        if path is not None:
            raise InputError(f"{path}: there is no table {_TABLE}; add it, or leave out --config.")
    return Config(None, None, {})


def _nearby() -> Iterator[Path]:
    """Look in the working directory, then in its parents."""
    try:
        here = Path.cwd()
    except FileNotFoundError:  # it was removed
        return
    yield from filter(
        is_file, (Path("pyproject.toml"), *(each / "pyproject.toml" for each in here.parents))
    )


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


def _checked(place: str, table: dict[str, Any], options: Mapping[str, Option]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("_", "-")
        if name not in options:
            close = closest(name, options)
            meant = f" (is {close!r} meant?)" if close else ""
            raise InputError(
                f"{place}: there is no option {key!r}{meant}; the options are {', '.join(options)}."
            )
        if name in values:
            raise InputError(f"{place}: the option {name!r} is given twice; give it once.")
        values[name] = checked(options[name], f"{place}: {key}", value)
    return values


# ------------------------------------------------------------------ values


def column_names(columns: str | None) -> list[str] | None:
    """Split the value of --columns; a name with a comma stands in double quotes, as in CSV.

    >>> column_names('cat, dog,"lions, tigers"')
    ['cat', 'dog', 'lions, tigers']
    """
    if columns is None:
        return None
    try:
        rows = list(csv.reader([columns], skipinitialspace=True))
    except csv.Error as error:
        raise InputError(
            f"--columns is {quoted(columns)}, which is not a list of names; put one that holds a line "
            "break in double quotes, as in CSV."
        ) from error
    return [name.strip() for cells in rows for name in cells]


def rates_of(given: Sequence[str] | None) -> dict[str, float] | None:
    """Split the values of --sampling-rate.

    >>> rates_of(["0=0.01", "a=b=0.5"])
    {'0': 0.01, 'a=b': 0.5}
    """
    found: dict[str, float] = {}
    for each in given or ():
        name, equals, rate = each.rpartition("=")
        try:
            number = float(rate)
        except ValueError:
            equals = ""
        if not equals:
            raise InputError(f"--sampling-rate is {each!r}; give a class and its rate, as in 0=0.01.")
        if name in found:
            raise InputError(f"--sampling-rate gives class {name!r} twice; give it once.")
        found[name] = number
    return found or None


def checked(option: Option, name: str, value: object) -> Any:
    """Return what an option takes, of a file or typed; ``name`` says whose value it is."""
    kind = _KINDS.get(option.name) or _KINDS.get(option.takes, _text)
    return option.check(name, kind(option, name, value))


def _text(option: Option, name: str, value: object) -> str | tuple[str, ...]:
    if not option.several:
        if not isinstance(value, str):
            raise _wrong(name, value, "text, in quotes")
        return value
    several = (value,) if isinstance(value, str) else value
    if not isinstance(several, list | tuple) or not all(isinstance(each, str) for each in several):
        raise _wrong(name, value, 'text, or a list of texts, such as ["a", "b"]')
    return tuple(several)


def _columns(option: Option, name: str, value: object) -> Any:
    listed = column_names(value) if isinstance(value, str) else value
    return _text(replace(option, several=True), name, listed)


def _gate(option: Option, name: str, value: object) -> object:
    if value not in ("material", "found", "never"):
        raise InputError(f"{name} is {_toml(value)}; give material or found or never.")
    return value


def _path(option: Option, name: str, value: object) -> Path:
    return value if isinstance(value, Path) else Path(str(_text(option, name, value)))


def _number(option: Option, name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(name, value, "a number")
    try:
        return float(value)
    except OverflowError as error:
        raise InputError(f"{name} is too large a number; give a smaller one.") from error


def _whole(option: Option, name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong(name, value, "a whole number")
    if value.bit_length() > _MOST_BITS:
        raise InputError(f"{name} is too large a number; give a smaller one.")
    if option.least is not None and value < option.least:
        raise InputError(f"{name} is {value}; give a whole number from {option.least} on.")
    return value


#: How a value is read, by what the option takes, or by its name.
_KINDS: Mapping[str, Callable[[Option, str, object], Any]] = {
    "INT": _whole,
    "FLOAT": _number,
    "FILE": _path,
    "columns": _columns,
    "fail-on": _gate,
}


def _wrong(name: str, value: object, wanted: str) -> InputError:
    return InputError(f"{name} is {_toml(value)}, but must be {wanted}.")


def _toml(value: object) -> str:
    """Write a value as its file does, nearly."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except ValueError:  # it has thousands of digits
        return "a number of thousands of digits"
