"""Checks of arguments: numbers, flags, text, objects and names, by the names of the arguments.

Every public function and class is decorated with :func:`arguments`. An argument called ``n_jobs`` or
``title`` means the same everywhere, and `KINDS` holds its check; if a name means something else in one
place, that place passes its own check. None is accepted if the type hint allows it.
"""

from __future__ import annotations

import difflib
import inspect
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial, wraps
from itertools import chain
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast, dataclass_transform

from caltest._visible import MOST, attempt, quoted
from caltest.exceptions import Argument, InputError, Phrase

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")
Of = TypeVar("Of", bound=Callable[..., Any])
Class = TypeVar("Class", bound=type)
#: Takes the name of an argument and its value; returns the value, or raises an InputError.
Kind: TypeAlias = Callable[[str, Any], Any]

MOST_RESAMPLES = 10_000_000
MOST_JOBS = 1024
_LONGEST_PATH = 4096  # characters, of most systems
_MOST_DIGITS = 18  # of a number that 64 bits hold


# ---------------------------------------------------------------------- kinds of arguments


def as_float(value: object) -> float | None:
    """Return a real number as a float, ±inf if it is too large; None if it is not a real number."""
    if type(value) is float:
        return value
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]


def as_int(value: object) -> int | None:
    """Return a whole number as an int; None if it is not one, such as 3.0 or True."""
    if type(value) is int:  # the others cost microseconds
        return value
    return int(value) if isinstance(value, Integral) and not isinstance(value, bool) else None


def has(value: Any, *names: str) -> bool:
    """Whether a value has all these attributes; False if looking them up raises.

    NGBoost's distributions return None for every name.
    """
    return bool(attempt(lambda: all(getattr(value, name, None) is not None for name in names)))


def wrong(name: str, value: object, do: str | Phrase) -> InputError:
    """Return the error for an argument with an unusable value."""
    return InputError(argument=name, found=quoted(value), do=do)


@dataclass(frozen=True)
class Number:
    """A number in an interval; ``ends`` are written as in mathematics, "[)" excludes the high end."""

    low: float = -math.inf
    high: float = math.inf
    ends: str = "()"
    advice: str = "give a finite number"

    def __call__(self, name: str, value: object) -> float:
        """Return the number as a float."""
        found = as_float(value)
        if found is not None:
            above = self.low <= found if self.ends[0] == "[" else self.low < found
            below = found <= self.high if self.ends[1] == "]" else found < self.high
            if above and below:
                return found
        raise wrong(name, value, self.advice)


@dataclass(frozen=True)
class Whole:
    """A whole number from ``low`` to ``high``."""

    low: int = 1
    high: int = 1_000_000_000
    advice: str = ""
    too_many: str | Phrase = ""

    def __call__(self, name: str, value: object) -> int:
        """Return the number as an int."""
        found = as_int(value)
        if found is not None and self.low <= found <= self.high:
            return found
        if found is not None and found > self.high:
            raise wrong(name, value, self.too_many or f"give {self.high:,} at most")
        least = f"whole number, at least {self.low}" if self.low != 1 else "positive whole number"
        raise wrong(name, value, self.advice or f"give a {least}")


@dataclass(frozen=True)
class OneOf:
    """An instance of a class in "module:Class Class"; none exists if the module is not imported."""

    path: str
    advice: str

    def __call__(self, name: str, value: T) -> T:
        """Return the object."""
        module, _, names = self.path.partition(":")
        found = sys.modules.get(module)
        classes = [getattr(found, each) for each in names.split()] if found else []
        if not isinstance(value, tuple(classes)):
            raise wrong(name, value, self.advice)
        return value


def name_or_place(name: str, value: object) -> str | int:
    """Return the name of a column, or its position."""
    limit = 10**_MOST_DIGITS
    number = Whole(-limit, limit, "give the name of a column, or its place")
    return value if isinstance(value, str) else number(name, value)


def regressor(name: str, value: T) -> T:
    """Return a regressor, as in scikit-learn."""
    classifies = has(value, "predict_proba") or has(value, "decision_function")
    if isinstance(value, type) or classifies or not has(value, "fit", "predict"):
        do = "a regressor: an object with fit(X, y) and predict(X)"
        raise wrong(name, value, f"give {do}{', which predicts numbers, not classes' * classifies}")
    return value


def flag(name: str, value: object) -> bool:
    """Return True or False; numpy's booleans are accepted."""
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        return bool(value)
    raise wrong(name, value, "give True or False")


def anything(name: str, value: T) -> T:
    """Return the value unchanged: here the name means something else, and the function checks it."""
    return value


def names(name: str, value: object) -> tuple[str, ...]:
    """Return a name or several names as a tuple."""
    several = (value,) if isinstance(value, str) else value
    if isinstance(several, Sequence) and all(isinstance(each, str) for each in several):
        return tuple(several)
    raise wrong(name, value, "give a name, or a list of names")


def path(name: str, value: object) -> str:
    """Return the path of a file."""
    found = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(found, str):
        raise wrong(name, value, "give the path of a file")
    if "\0" in found:
        raise InputError(f"{name} holds a null character, as no file's path does; check it.")
    if len(found) > _LONGEST_PATH:
        most = f"more than the {_LONGEST_PATH} that a path can have"
        raise InputError(f"{name} has {len(found)} characters, {most}; shorten it.")
    return found


def paths(name: str, value: object) -> Any:
    """Return the path of one file, or a list of paths."""
    several = isinstance(value, list | tuple) and value
    return [path(name, each) for each in several] if several else path(name, value)


def texts_by_name(name: str, value: object) -> Any:
    """Return a mapping of texts to texts unchanged."""
    if not isinstance(value, Mapping) or {type(x) for pair in value.items() for x in pair} - {str}:
        raise wrong(name, value, "give texts by the names of columns, as in {'target': 'rain'}")
    return value


def jobs(name: str, value: object) -> int:
    """Return a number of workers; −1 means all cores."""
    found = as_int(value)
    if found and -MOST_JOBS <= found <= MOST_JOBS:
        return found
    most = f" (at most {MOST_JOBS:,})" if found else ""
    raise wrong(name, value, f"give how many workers{most}, or -1 for all cores")


def axes(name: str, value: object) -> object:
    """Return matplotlib axes: a single one, or a sequence or array of them."""
    from matplotlib.axes import Axes

    several = value.ravel().tolist() if hasattr(value, "ravel") else value
    each = several if isinstance(several, list | tuple) else [several]
    if each and all(isinstance(one, Axes) for one in each):
        return value
    raise wrong(name, value, "give matplotlib axes, as of plt.subplots(), or leave it out")


_text = OneOf("builtins:str", "give a text")
_binning = OneOf("caltest.binning:Binning", "give an object of caltest.binning, such as EqualWidth(15)")
_ratio = Number(1.0, 1e6, advice="give a ratio above 1, 1.25 for a quarter too much or too little")
positive_integer = Whole()
real_kernel = OneOf(
    "caltest.kernels:Kernel", "give a real-valued kernel of caltest.kernels, such as Gaussian(0.5)"
)
#: Its sixth power is still a finite float.
positive_number = Number(1e-40, 1e40, "[]", "give a positive number, 1e-40 to 1e40")
level = Number(0.0, 1.0, advice="give a level between 0 and 1, such as 0.05")
confident = Number(0.0, 1.0, advice="give one between 0 and 1, such as 0.95")
_most_draws = {"most": f"{MOST_RESAMPLES:,}", "null": Argument("null", "moments")}
_fewer = "give at most {most}; for smaller p-values use {null}, which draws none"
_positive = "give a positive whole number such as 999"
count_of_draws = Whole(1, MOST_RESAMPLES, _positive, Phrase(_fewer, _most_draws))
_points = "give a difference of probabilities from 0 to below 1, such as 0.02 for two percentage points"
difference = Number(0.0, 1.0, "[)", _points)


_distance = "give a difference of probabilities between 0 and 1, 0.02 for 2 points"
SIDES = ("too_low", "too_high")


def limit(name: str, value: object, most: float = math.inf) -> float | dict[str, float | None]:
    """Return the error that matters: a number above 0, or one per side, None where none matters.

    With ``most`` 1 it is an error of probabilities.
    """
    advice = _distance if most == 1.0 else f"{_distance}; of point forecasts any number above 0"
    if not isinstance(value, Mapping):
        return Number(0.0, most, advice=advice)(name, value)
    found = {side: value.get(side) for side in SIDES}
    given = [side for side, each in found.items() if each is not None]
    if not given or set(value) - set(found):
        do = "give {'too_low': 0.02, 'too_high': None}, None where none matters"
        raise wrong(name, dict(value), do)
    ends = "()" if len(given) == 2 else "[)"
    for side in given:
        found[side] = Number(0.0, most, ends, advice)(f"{name}[{side!r}]", found[side])
    return found


def step(name: str, value: object) -> float:
    """Return the step of a grid from 0 to 1, as exactly as a float can."""
    do = "give the step in which probabilities were stated, 1 a multiple of it, such as 0.05 or 0.001"
    found = Number(1e-6, 1.0, "[]", do)(name, value)
    steps = round(1.0 / found)
    if abs(steps * found - 1.0) > 1e-9:
        raise wrong(name, value, do)
    return 1.0 / steps


#: The check for every argument of this name; where the type hint says so, None is accepted too.
KINDS: dict[str, Kind] = {
    **dict.fromkeys(("alternative", "batch", "blocks", "command", "correction", "date"), _text),
    **dict.fromkeys(("guaranteed", "logits", "progress", "skip_missing"), flag),
    **dict.fromkeys(("materiality_low", "materiality_high"), Number(0.0, ends="[)", advice=_distance)),
    **dict.fromkeys(("min_rows", "rank"), positive_integer),
    "alpha": level,
    "audit": OneOf("caltest.auditing:Audit", "give what caltest.audit returns"),
    "ax": axes,
    "binning": _binning,
    "clip": Number(0.0, 1.0, advice="give a small probability such as 1e-7, or None"),
    "columns": lambda name, value: value if isinstance(value, Mapping) else names(name, value),
    "confidence": confident,
    "label": name_or_place,
    "learner": regressor,
    "intersections": Whole(1, 3, "give 1, 2 or 3: how many columns are crossed at most"),
    "materiality": limit,
    "materiality_ratio": _ratio,
    "mean_run_length": Number(1.0, 1e15, "(]", "give a number of rows above 1, such as 10_000"),
    "kernel": OneOf(
        "caltest.kernels:Kernel MatrixKernel", "give an object of caltest.kernels, such as Gaussian()"
    ),
    "n_bins": Whole(1, 1_000_000),
    "n_jobs": jobs,
    "n_resamples": count_of_draws,
    "path": path,
    "rounding": step,
    "title": _text,
    "tolerance": difference,
}


def real_array(name: str, value: Any, advice: str = "give numbers") -> NDArray[np.float64]:
    """Return an array of real numbers in float64; refuse values that are not real or too large."""
    import numpy as np

    check_unmasked(name, value)
    found = attempt(lambda: None if np.iscomplexobj(value) else np.asarray(value, dtype=np.float64))
    if found is None:
        raise wrong(name, value, advice)
    return found


def check_unmasked(name: str, value: object, advice: str = "leave out what has no value") -> None:
    """Raise if an entry is masked: converted to an array it would show the value under the mask."""
    row = _masked(value)
    if row is not None:
        where, place = (", the first in {row}", row) if row >= 0 else ("", None)
        text = f"{{argument}} has masked entries{where}; fill them, or {{do}}."
        raise InputError(text, argument=name, row=place, do=advice)


def _masked(value: object, depth: int = 3) -> int | None:
    """Return the row of the first masked entry, −1 for a masked scalar; None if nothing is masked."""
    import numpy as np

    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        return int(np.argwhere(np.ma.getmaskarray(value))[0][0]) if value.ndim else -1
    if isinstance(value, list | tuple) and depth:
        kinds = (list, tuple, np.ma.MaskedArray)
        nested = ((row, each) for row, each in enumerate(value) if isinstance(each, kinds))
        return next((row for row, each in nested if _masked(each, depth - 1) is not None), None)
    return None


def takes(*given: str, of: Callable[..., Any], called: str | None = None) -> bool:
    """Return whether a function can be called with these arguments; if not and ``called``, raise.

    A C function without a signature is assumed to accept them.
    """
    try:
        inspect.signature(of).bind(*given)
    except ValueError:
        return True
    except TypeError as error:
        if called is None:
            return False
        found = f"{quoted(of)} that cannot be called with {' and '.join(given)} ({error})"
        raise InputError(f"{called} is {found}; write it as def f({', '.join(given)}).") from None
    return True


def changed(given: T, **values: Any) -> T:
    """Return a copy of a frozen object with some fields changed, without checking them."""
    found = copy(given)
    for name, value in values.items():
        object.__setattr__(found, name, value)
    return found


def when_asked(*names: str) -> Callable[[Class], Class]:
    """Let fields of a frozen dataclass hold functions that are called when the field is first read."""

    def asked(name: str, given: Any) -> Any:
        if callable(value := vars(given)[name]):
            value = vars(given)[name] = value()
        return value

    def kept(name: str, given: Any, value: Any) -> None:
        vars(given)[name] = value

    def decorated(cls: Any) -> Any:
        for name in names:
            setattr(cls, name, property(partial(asked, name), partial(kept, name), doc=""))
        cls.__getstate__ = lambda given: vars(given) | {name: getattr(given, name) for name in names}
        return cls

    return decorated


def level_of_confidence(confidence: float) -> float:
    """Return 1 − confidence without rounding noise: 0.05 instead of 0.050000000000000044."""
    return float(1 - Decimal(repr(float(confidence))))


def check_draws(name: str, draws: int, level: float, sides: int = 1) -> None:
    """Raise if so few draws cannot reach the level: the smallest p-value is sides / (1 + draws)."""
    least = sides / (1 + draws)
    if least <= level:
        return
    count = math.ceil(min(sides / level * (1 - 1e-12), 2.0 * MOST_RESAMPLES)) - 1
    count += sides / (1 + count) > level  # rounding may require one more
    do = Phrase("give {enough} or more", {"enough": Argument(name, count)})
    if count > MOST_RESAMPLES:
        do = Phrase("choose a level that draws can reach, such as 0.01")
    never = f"no p-value is below {least:.3g}, so that nothing is ever rejected at level {level:g}"
    text = f"{{argument}} is {{found}}, with which {never}; {{do}}."
    raise InputError(text, argument=name, found=draws, do=do)


# ---------------------------------------------------------------------- names among choices


def whole_number(value: object) -> int | None:
    """Return a whole number ≥ 0 of at most 18 digits, or written as one; None if it is not one."""
    found = as_int(value)
    if found is not None:
        return found if 0 <= found < 10**_MOST_DIGITS else None
    digits = isinstance(value, str) and value.isdecimal() and len(value) <= _MOST_DIGITS
    return int(value) if digits else None  # type: ignore[call-overload]


def closest(name: object, names: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the closest match to an unknown name, or None."""
    if not isinstance(name, str) or len(name) > MOST:
        return None
    close = difflib.get_close_matches(name, list(names), n=1, cutoff=cutoff)
    return close[0] if close else None


def choose(kind: str, name: object, choices: Mapping[str, T]) -> T:
    """Return ``choices[name]``; for an unknown name, raise and suggest the closest one."""
    if isinstance(name, str) and name in choices:
        return choices[name]
    close = closest(name, choices, cutoff=0.5)
    hint = f"did you mean {close!r}? Choices" if close else "choices"
    raise InputError(f"there is no {kind} {quoted(name)}; {hint}: {', '.join(choices)}.")


def among(*words: str) -> Kind:
    """Return a check that an argument is one of these words."""
    return lambda name, value: choose(name, value, dict.fromkeys(words))


def made(kind: str, given: object, choices: Mapping[str, type[T]], base: type[T], do: str) -> T:
    """Return an object of a kind, from its name, its class or an instance."""
    given = choose(kind, given, choices) if isinstance(given, str) else given
    found = given() if isinstance(given, type) and issubclass(given, base) else given
    if not isinstance(found, base):
        raise wrong(kind, given, do)
    return found


# ---------------------------------------------------------------------- whole calls


def arguments(**kinds: Kind) -> Callable[[Of], Of]:
    """Check the arguments of a public function, or of a class on construction.

    ``kinds`` holds checks for arguments that are not in `KINDS` or mean something else here. Defaults
    are never checked. Signature, type hints and docstring stay.
    """

    def decorated(of: Of) -> Of:
        if isinstance(of, type):
            of.__init__ = _checked(of.__init__, kinds)  # type: ignore[misc]
            return of
        return _checked(of, kinds)  # type: ignore[no-any-return]

    return decorated


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def options(**kinds: Kind) -> Callable[[Class], Class]:
    """Make a frozen dataclass of options, checked by `arguments`."""

    def decorated(cls: Class) -> Class:
        return arguments(**kinds)(cast("Class", dataclass(frozen=True)(cls)))

    return decorated


#: Why some functions accept no features.
_FEATURELESS = {
    "Monitor": "bets on predictions alone",
    "compare": "answers for models in groups that are named",
    "estimate": "returns one value, and no search",
    "power": "draws predictions from a pilot set, without what describes its rows",
    "sbc": "looks at simulated parameters, which nothing describes",
}


def _checked(function: Any, own: dict[str, Kind]) -> Any:
    known, name_of = inspect.signature(function).parameters, function.__qualname__.partition(".")[0]
    kinds = {name: kind for name, kind in (KINDS | own).items() if name in known}
    free = {name for name in kinds if "None" in str(known[name].annotation)}
    defaults = {name: known[name].default for name in kinds}
    places = tuple(known)

    @wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        if name_of in _FEATURELESS and "features" in kwargs:
            why = f"caltest.{name_of} {_FEATURELESS[name_of]}"
            raise InputError(f"{why}; leave out features, and give them to caltest.audit.")
        numbers: dict[str, Any] = {}  # as Python numbers, whatever was passed; limits by both sides
        for name, value in chain(zip(places, args, strict=False), kwargs.items()):
            if name in kinds and value is not defaults[name] and not (value is None and name in free):
                found = kinds[name](name, value)
                if isinstance(value, Real | Mapping) or isinstance(found, bool):
                    numbers[name] = found
        if numbers:
            placed = (numbers.get(*each) for each in zip(places, args, strict=False))
            args = (*placed, *args[len(places) :])
            kwargs |= {name: number for name, number in numbers.items() if name in kwargs}
        return function(*args, **kwargs)

    return checked


# ------------------------------------------------------------------ the environment

#: Allowed values of environment variables that libraries read, as a pattern and in words.
_VARIABLES = {
    "NUMBA_NUM_THREADS": ("(0*[1-9][0-9]{0,3})?", "a whole number from 1 to 9999"),
    "SOURCE_DATE_EPOCH": ("[0-9]{0,11}", "whole seconds since 1970"),
}


def check_variable(name: str) -> None:
    """Raise if an environment variable has a value that would make a library fail on import."""
    known, do = _VARIABLES[name]
    if not re.fullmatch(known, given := os.environ.get(name, "")):
        text = f"the environment variable {name} is {quoted(given)}; set it to {do}, or unset it."
        raise InputError(text)
