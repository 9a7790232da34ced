"""Numbers as readers see them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar, copy_context
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np

from caltest._visible import shown

T = TypeVar("T")
P = ParamSpec("P")

_MOST_DIGITS = 4  # of percentages
_STEPS = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005, 0.0002, 0.0001)


class Unit(NamedTuple):
    """The unit of errors, with the words for predicted and observed values."""

    name: str = "points"  #: After a number; "" for outcomes whose unit has no name.
    heading: str = "points"  #: For a column or an axis.
    predicted: str = "predicted probability"  #: For an axis, as is the next.
    observed: str = "observed rate"
    seen: str = "observed"  #: In one word; for expectiles not an outcome, but the forecast less V.
    mean: str = "rate"
    loss: str = "log loss"
    ends: tuple[float, float] = (0.0, 1.0)  #: The range in which means lie.
    times: float = 100.0  #: Factor by which errors are multiplied when written.
    of_outcomes: bool = False  #: Whether errors are those of numbers, not of probabilities.


_UNIT: ContextVar[Unit | None] = ContextVar("unit", default=None)


def unit() -> Unit:
    """Return the unit in which errors, predictions and observations are being written."""
    return _UNIT.get() or Unit()


def in_unit_of(write: Callable[P, T]) -> Callable[P, T]:
    """Make a function that writes or draws a result (its first argument) use the result's unit.

    The unit is percentage points, except for audits of point forecasts, whose errors are in units of
    the outcome. Functions called in between read it from :func:`unit`.
    """

    @wraps(write)
    def written(*args: P.args, **kwargs: P.kwargs) -> T:
        result: Any = next(iter((*args, *kwargs.values())))
        own, context = Unit(), copy_context()
        if hasattr(result, "unit") and result.functional is not None:
            name, of = shown(result.unit), f", {shown(result.unit)}" if result.unit else ""
            words = f"forecast{of}", f"mean outcome{of}", "observed", "mean", "mean squared error"
            if result.functional != "mean":
                words = words[0], f"implied value{of}", "implied", "value", "asymmetric squared error"
            own = Unit(name, name or "units of the outcome", *words, (-math.inf, math.inf), 1.0, True)
        context.run(_UNIT.set, own)
        return context.run(write, *args, **kwargs)

    return written


def with_unit(number: str) -> str:
    """Write a number, or words for one, with its unit: "9.8 points", "9.8 EUR", "9.8"."""
    return f"{number} {unit().name}".rstrip()


def up_to(error: float) -> str:
    """Write the largest absolute error that is possible, with its unit."""
    return with_unit(outward_points(0.0, error)[1])


def figures(value: float, digits: int) -> str:
    """Write a number of any size to this many digits, without trailing zeros.

    Examples
    --------
    >>> figures(128.44, 2), figures(0.01312, 2), figures(12345.5, 12), figures(math.inf, 2)
    ('130', '0.013', '12,345.5', '∞')
    """
    return f"{'−' * (value < 0.0)}{float(f'{abs(value):.{digits}g}'):,.12g}".replace("inf", "∞")


def _decimals(*sizes: float) -> int:
    """Return the decimals that give the first positive size two or three digits; −1 means tens."""
    size = next((each for each in sizes if 0.0 < each < math.inf), 20.0)
    return min(math.ceil(math.log10(20.0 / size)), 12)


def _length(value: float, *ends: float) -> float:
    """Return the length of an interval around a value, using the ends that are finite."""
    known = [value, *filter(math.isfinite, ends)]
    return max(known) - min(known)


def _placed(value: float, decimals: int, sign: str = "") -> str:
    """Write a number to this many decimals."""
    value = round(value, decimals) + 0.0
    return f"{value:{sign},.{max(decimals, 0)}f}".replace("-", "−").replace("inf", "∞")


def short(value: Any) -> str:
    """Return a value in few characters."""
    return f"{value + 0.0:.4g}" if isinstance(value, float) else str(value)  # −0 is 0


def without_rounding(value: float, *beside: float) -> float:
    """Return a number, or 0 if it is only rounding error of sums of the others (by default about 0.01).

    Examples
    --------
    >>> without_rounding(-8.9e-16), without_rounding(1e-14), without_rounding(1e-14, 3.0)
    (0.0, 1e-14, 0.0)
    """
    largest = max((abs(each) for each in beside if math.isfinite(each)), default=0.01)
    return 0.0 if abs(value) <= 1e-13 * largest else value


def number(value: float, digits: int = 4) -> str:
    """Write a number to four significant digits, or ``digits``.

    Examples
    --------
    >>> number(0.012345), number(-2.0), number(-0.0), number(math.inf)
    ('0.01235', '−2', '0', '∞')
    """
    text = f"{value or 0.0:.{digits}g}".replace("-", "−")
    return text.replace("inf", "∞").replace("nan", "undefined")


def points(error: float) -> str:
    """Write a difference of probabilities in percentage points, or an error in units of the outcome.

    Examples
    --------
    >>> points(0.062), points(0.01), points(0.0001)
    ('6.2 points', '1 point', '0.01 points')
    """
    if unit().of_outcomes:
        return with_unit(figures(error, 12))
    number = f"{100.0 * error:.4g}"
    return f"{number} point{'' if number == '1' else 's'}"


def about_points(error: float, noun: str = "percentage point") -> str:
    """Write a difference of probabilities, at least 0, with the digits that matter in a sentence.

    Examples
    --------
    >>> about_points(0.0782), about_points(0.0131), about_points(0.0048)
    ('8 percentage points', '1.3 percentage points', '0.48 percentage points')
    >>> about_points(0.0494), about_points(0.0496), about_points(0.01), about_points(0.00002)
    ('4.9 percentage points', '5 percentage points', '1.0 percentage point', '0.002 percentage points')
    """
    if unit().of_outcomes:
        return with_unit(figures(error, 2))
    size = 100.0 * error
    digits = 0 if size >= 4.95 else 1 if size >= 0.95 else 2 if size >= 0.095 else 3
    text = f"{size:.{digits}f}" if size >= 0.0005 else f"{size:.1g}"
    return f"{text} {noun}{'' if text in ('1', '1.0') else 's'}"


def outward_points(low: float, high: float) -> tuple[str, str]:
    """Write the ends of an interval of differences in points, rounded outwards.

    Examples
    --------
    >>> outward_points(-0.0978, -0.0591), outward_points(-0.00012, 0.0034)
    (('−9.8', '−5.9'), ('−0.02', '0.34'))
    >>> outward_points(-0.0403, -0.0009)  # not to 0.0, which it excludes
    ('−4.03', '−0.09')
    >>> outward_points(0.0, 0.1234), outward_points(0.0001, 0.1234), outward_points(1e-12, 0.1234)
    (('0.0', '12.4'), ('0.01', '12.34'), ('0.0', '12.4'))
    >>> outward_points(-0.1, 0.05), outward_points(0.00011, 0.0099)
    (('−10.0', '5.0'), ('0.01', '0.99'))
    """
    times, largest = unit().times, max((abs(x) for x in (low, high) if math.isfinite(x)), default=0.0)
    digits = 1 if largest >= 0.01 else 2
    digits = _decimals(high - low, largest / 10.0) if unit().of_outcomes else digits
    digits, *ends = _outward(times * low, times * high, digits)
    start, end = (_placed(each, digits) for each in ends)
    return start, end


def _outward(low: float, high: float, digits: int) -> tuple[int, float, float]:
    """Round an interval outwards; use more digits if rounding alone would make it reach 0."""
    for finer in (*range(digits, digits + 3), digits):  # more digits, so that no end becomes 0
        scale = 10.0**finer
        ends = float(np.floor(low * scale + 1e-9)) / scale, float(np.ceil(high * scale - 1e-9)) / scale
        if low * high <= 0.0 or 0.0 not in ends:
            break
    return finer, *ends


def signed_points(gap: float, low: float = 1.0, high: float = 1.0) -> str:
    """Write a signed difference of probabilities in points, with precision suited to its interval.

    Examples
    --------
    >>> signed_points(0.0423), signed_points(-0.11), signed_points(0.0), signed_points(0.0001)
    ('+4.2', '−11.0', '0.0', '+0.01')
    """
    if unit().of_outcomes:
        digits = _decimals(_length(gap, low, high), abs(gap))
        return _placed(gap, digits, "+" if round(gap, digits) else "")
    for digits in (1, 2, 3) if max(abs(low), abs(high)) >= 0.01 else (2, 3):
        text = f"{100.0 * gap:+.{digits}f}"
        if float(text) != 0.0:
            return text.replace("-", "−")
    return "0.0"


def percent(share: float, digits: int) -> str:
    """Write a share in percent; one that is almost 0% or 100% is not written as if it were.

    Examples
    --------
    >>> percent(0.52, 0), percent(0.00002, 1), percent(0.99999, 1), percent(0.0, 1), percent(1.0, 0)
    ('52%', '<0.1%', '>99.9%', '0%', '100%')
    """
    if share in (0.0, 1.0):
        return f"{100 * share:.0f}%"
    smallest = 10.0**-digits
    text = f"{100.0 * share:.{digits}f}%"
    if text == f"{0.0:.{digits}f}%":
        return f"<{smallest:.{digits}f}%"
    return f">{100.0 - smallest:.{digits}f}%" if text == f"{100.0:.{digits}f}%" else text


def kept_of(rates: Mapping[Any, float]) -> str:
    """Write the share of rows kept for each class.

    Examples
    --------
    >>> kept_of({0: 0.01, "fraud": 0.5})
    '1% of class 0, 50% of class fraud'
    """
    each = (f"{100.0 * rate:.3g}% of class {shown(str(name))}" for name, rate in rates.items())
    return ", ".join(each)


def percents(one: float, other: float, least: int = 0, *ends: float) -> tuple[str, str]:
    """Write two shares in percent, with enough digits to distinguish them and at least ``least``.

    For means of outcomes, use as many digits as the interval of their difference justifies.

    Examples
    --------
    >>> percents(0.52, 0.4), percents(0.9931, 0.8968), percents(0.50001, 0.50012), percents(0.8, 0.8)
    (('52%', '40%'), ('99.3%', '89.7%'), ('50.001%', '50.012%'), ('80%', '80%'))
    >>> percents(1e-12, 3e-9), percents(1 - 1e-9, 1.0), percents(0.58, 0.25, 1)
    (('1e-10%', '3e-07%'), ('>99.9%', '100%'), ('58.0%', '25.0%'))
    >>> percents(0.0, 1e-9), percents(0.99996, 0.99997), percents(1 - 1e-9, 1 - 1e-12)
    (('0%', '<0.1%'), ('99.9960%', '99.9970%'), ('1 − 1e−9', '1 − 1e−12'))
    """
    if unit().of_outcomes:
        largest = max(abs(one), abs(other))
        digits = max(_decimals(_length(one - other, *ends), abs(one - other), largest / 50.0), 0)
        return _placed(one, digits), _placed(other, digits)
    first = max(least, 1 if min(one, other) < 0.1 or max(one, other) > 0.9 else 0)
    for digits in range(first, _MOST_DIGITS + 1):
        texts = percent(one, digits), percent(other, digits)
        plainly = {one, other} & {0.0, 1.0} or abs(one - other) >= 0.02 * 10.0**-digits
        if one == other or (texts[0] != texts[1] and plainly):
            return texts
    if texts[0] == texts[1] and max(one, other) < 0.5 * 10.0 ** (-_MOST_DIGITS - 2):
        return f"{100.0 * one:.0e}%", f"{100.0 * other:.0e}%"
    if texts[0] == texts[1] and min(one, other) > 1.0 - 0.5 * 10.0 ** (-_MOST_DIGITS - 2):
        near, far = probabilities([one, other])
        return near, far
    return texts


def confidence_text(confidence: float) -> str:
    """Write a confidence in percent, never as 100%.

    Examples
    --------
    >>> [confidence_text(confidence) for confidence in (0.95, 0.975, 0.99999, 2 / 3)]
    ['95%', '97.5%', '99.999%', '66.67%']
    """
    for digits in range(4, 18):
        text = f"{100.0 * confidence:.{digits}g}"
        if float(text) < 100.0:
            break
    return f"{text}%"


def pvalue(value: float, alpha: float) -> str:
    """Write a p-value with enough digits to show on which side of alpha it lies.

    Examples
    --------
    >>> pvalue(0.0384, 0.05), pvalue(0.0500004, 0.05), pvalue(0.05, 0.05), pvalue(1.0, 0.05)
    ('0.038', '0.0500004', '0.05', '1')
    """
    for digits in range(2, 17):
        text = f"{value:.{digits}g}"
        if (float(text) <= alpha) == (value <= alpha):
            break
    return text


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Write a count with its noun: "1 row", "3 rows".

    Examples
    --------
    >>> counted(1, "check"), counted(12345, "row"), counted(2, "hypothesis", "hypotheses")
    ('1 check', '12,345 rows', '2 hypotheses')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def in_units(
    found: tuple[float, float, float], sign: str = "", about: str = "", unit: float = 0.01
) -> str:
    """Write a number with its interval rounded outwards, to the precision that its length justifies.

    Examples
    --------
    >>> in_units((0.061, 0.098, 0.138)), in_units((-0.0026, 0.0018, 0.0051), "+", "about ")
    ('9.8 (6.1 to 13.8)', '+0.18 (about −0.26 to 0.51)')
    >>> in_units((-4.03, -1.8, -0.05), unit=1.0)
    '−1.80 (−4.03 to −0.05)'
    """
    low, value, high = (each / unit for each in found)
    length = high - low
    known = math.isfinite(length)
    decimals = min(max(1 - math.floor(math.log10(length)), 1), 6) if known and length > 0.0 else 2
    told = " (unknown)"
    if known:
        decimals, *rounded = _outward(low, high, decimals)
        ends = (f"{each + 0.0:.{decimals}f}" for each in rounded)
        told = f" ({about}{' to '.join(ends)})"
    told = told if length else ""
    return f"{round(value, decimals) + 0.0:{sign}.{decimals}f}{told}".replace("-", "−")


def leading(items: Sequence[T], most: int) -> Sequence[T]:
    """Return the first items, at most ``most``; one more if only a single one would be left out."""
    return items[: most + (len(items) == most + 1)]


def duration(seconds: float) -> str:
    """Write a duration in a single unit.

    Examples
    --------
    >>> duration(1), duration(59), duration(80), duration(5000), duration(90 * 60), duration(1e9)
    ('1 second', '59 seconds', '1 minute', '1 hour', '2 hours', '11,574 days')
    """
    for size, unit in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            return counted(round(seconds / size), unit)
    return counted(round(seconds), "second")


def probabilities(values: Iterable[float]) -> list[str]:
    """Write probabilities in as few digits as distinguish them; only exact 0 and 1 look like 0 and 1.

    Examples
    --------
    >>> probabilities([0.9, 0.996, 0.9999]), probabilities([0.0, 0.00001, 0.5, 0.99999999])
    (['0.9', '0.996', '0.9999'], ['0', '1e−5', '0.5', '1 − 1e−8'])
    """
    every = [float(value) for value in values]
    for digits in range(2, _MOST_DIGITS + 1):
        texts = [
            f"1 − {1.0 - value:.1g}" if 0.99994 < value < 1.0 else f"{value:.{digits}g}"
            for value in every
        ]
        if len(set(texts)) == len(set(every)) and texts.count("1") == every.count(1.0):
            break
    return [text.replace("e-0", "e-").replace("-", "−") for text in texts]


def probability_axis(smallest: float = 0.0, largest: float = 1.0, most: int = 5) -> list[float]:
    """Return tick positions for an axis of probabilities; the first and last tick are its ends.

    The axis is no longer than the data need, and its ticks leave at most ``most`` spaces.

    Examples
    --------
    >>> probability_axis(), probability_axis(most=2), probability_axis(0.91, 0.99)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [0.0, 0.5, 1.0], [0.9, 0.92, 0.94, 0.96, 0.98, 1.0])
    """
    for step in reversed(_STEPS):
        low, high = math.floor(smallest / step + 1e-9), math.ceil(largest / step - 1e-9)
        if high == low:
            low, high = (low, high + 1) if low == 0 else (low - 1, high)
        if high - low <= most:
            break
    return [round(k * step, 9) for k in range(low, high + 1)]


def shortest_between(low: float, high: float) -> str:
    """Write the shortest number x with ``low`` ≤ x < ``high``; ``low`` itself if there is none.

    >>> shortest_between(67.0, 68.0), shortest_between(0.1234, 0.1299), shortest_between(0.5, 0.5)
    ('67', '0.124', '0.5')
    """
    if -math.inf < low < high < math.inf:
        for digits in range(1, 17):
            step = 10.0 ** (math.floor(math.log10(max(abs(low), abs(high)))) + 1 - digits)
            text = positional(float(f"{math.ceil(low / step) * step:.{digits}g}"))
            if low <= float(text) < high:
                return text
    return positional(low)


def positional(value: float, digits: int | None = None) -> str:
    """Write a number without an exponent unless it is very small or large, to ``digits`` or in full.

    >>> positional(67.0), positional(12.3456, 4), positional(123456.0, 4), positional(1e-05)
    ('67', '12.35', '123456', '1e-05')
    """
    if value and not 1e-4 <= abs(value) < 1e15:
        return repr(value) if digits is None else f"{value:.{digits}g}"
    digits = None if float(value).is_integer() else digits
    return np.format_float_positional(value + 0.0, digits, fractional=False, trim="-")
