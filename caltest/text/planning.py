"""Power and sample size in plain language."""

from __future__ import annotations

from caltest._visible import shown
from caltest.planning.result import Interval, PowerPoint, SampleSizeResult, Simulation
from caltest.text.numbers import counted, page, paragraph, percent, points, table

_CAUTION = (
    "This is the power against the model that was assumed, with independent rows whose labels were not "
    "used to fit it. A model that is wrong in another way, or less, needs other numbers."
)


def summary(result: Simulation) -> str:
    """Return what was assumed, tested and found."""
    heading = "Sample size" if isinstance(result, SampleSizeResult) else "Power"
    lines = [f"{heading} of a calibration test", *_facts(result), "", *_table(result), ""]
    if isinstance(result, SampleSizeResult):
        lines += paragraph(_answer(result))
    else:
        lines += paragraph(_reading(result.points[-1], result))
    lines += paragraph(_CAUTION)
    for warning in result.warnings:
        lines += ["", *paragraph(f"Note: {warning}")]
    return page(lines)


def _facts(result: Simulation) -> list[str]:
    rows = [("assumed", result.assumed)]
    if result.error is not None:
        amount = points(float(f"{result.error:.2g}"))
        rows.append(("error", f"{amount} on average (total variation distance)"))
    lens = f", seen through the lens {shown(result.lens)}" if result.lens else ""
    rows.append(
        ("test", f"{shown(result.statistic)}{lens}, {result.alternative}, at level {result.alpha:g}")
    )
    if result.tolerance is not None:
        rows.append(("tolerance", points(result.tolerance)))
    draws = f", {result.n_resamples:,} resamples" if result.n_resamples else ""
    rows.append(("null", f"{result.null}, {result.guarantee}{draws}"))
    return table(rows)


def _table(result: Simulation) -> list[str]:
    null = any(point.false_rejections is not None for point in result.points)
    head = f"  {'rows':>10}  {'data sets':>9}  {'rejected':>8}  {'95% interval':>16}"
    lines = [head + ("  if calibrated" if null else "")]
    for point in result.points:
        line = (
            f"  {point.n:>10,}  {point.n_datasets:>9,}  {percent(point.power, 1):>8}"
            f"  {_between(point.interval):>16}"
        )
        if point.size is not None and point.size_interval is not None:
            line += f"  {percent(point.size, 1)} ({_between(point.size_interval)})"
        lines.append(line)
    return lines


def _between(interval: Interval) -> str:
    low, high = interval
    return f"{percent(low, 1)} to {percent(high, 1)}"


def _reading(point: PowerPoint, result: Simulation) -> str:
    low, high = point.interval
    return (
        f"Of such data sets of {counted(point.n, 'row')} the test rejects {percent(point.power, 1)} "
        f"(between {percent(low, 1)} and {percent(high, 1)}, as far as "
        f"{counted(point.n_datasets, 'data set')} can tell): that is its power."
    )


def _answer(result: SampleSizeResult) -> str:
    wanted = f"A power of {result.power:g}"
    first, last = result.points[0], result.points[-1]
    if result.n is None:
        curve = result.curve
        after = (
            f", and the fitted curve levels off at {percent(curve.highest, 0)}"
            if curve.n == float("inf")
            else ""
        )
        return (
            f"{wanted} is not reached with max_n = {result.max_n:,} rows: with {last.n:,} the test "
            f"rejects {percent(last.power, 1)} of {counted(last.n_datasets, 'data set')}{after}."
        )
    if result.reached == "at the smallest":
        return (
            f"{wanted} is reached with min_n = {result.min_n:,} rows already, where the test rejects "
            f"{percent(first.power, 1)} of {counted(first.n_datasets, 'data set')}; fewer may do."
        )
    if result.interval == (None, None):
        return (
            f"{wanted} takes {counted(result.n, 'row')} by the fitted curve, but the simulation leaves "
            f"that open: fewer than {result.min_n:,} or more than {result.max_n:,} may be right; "
            "simulate more data sets, or look at more rows."
        )
    return f"{wanted} takes {counted(result.n, 'row')}{_interval(result)}."


def _interval(result: SampleSizeResult) -> str:
    low, high = result.interval
    start = f"{low:,}" if low is not None else f"fewer than {result.min_n:,}"
    end = f"{high:,}" if high is not None else f"more than {result.max_n:,}"
    return f" (between {start} and {end}, 95% interval of the simulation)"
