"""Power and sample size in plain language."""

from __future__ import annotations

from caltest._visible import shown
from caltest.planning.result import Interval, SampleSizeResult, Simulation
from caltest.text.numbers import counted, page, paragraph, percent, points, through

_CAUTION = (
    "This is the power against the assumed error, with independent rows and labels that were not used "
    "to fit the model. If the model is wrong in another way, or by less, the power differs."
)


def summary(result: Simulation) -> str:
    """Return what was assumed, tested and found."""
    rows = [("assumed", result.assumed)]
    if result.error is not None:
        amount = points(float(f"{result.error:.2g}"))
        rows.append(("error", f"{amount} on average (total variation distance)"))
    asked = f"{shown(result.statistic)}{through(result.lens)}, {result.alternative}"
    rows.append(("test", f"{asked}, at level {result.alpha:g}"))
    if result.tolerance is not None:
        rows.append(("tolerance", points(result.tolerance)))
    draws = f", {result.n_resamples:,} resamples" if result.n_resamples else ""
    rows.append(("null", f"{result.null}, {result.guarantee}{draws}"))
    null = any(point.false_rejections is not None for point in result.points)
    head = f"  {'rows':>10}  {'data sets':>9}  {'rejected':>8}  {'95% interval':>16}"
    table = [head + ("  if calibrated" if null else "")]
    for point in result.points:
        line = (
            f"  {point.n:>10,}  {point.n_datasets:>9,}  {percent(point.power, 1):>8}"
            f"  {_between(point.interval):>16}"
        )
        if point.size is not None and point.size_interval is not None:
            line += f"  {percent(point.size, 1)} ({_between(point.size_interval)})"
        table.append(line)
    if isinstance(result, SampleSizeResult):
        heading, answer = "Sample size of a calibration test", _answer(result)
        rows_needed = "more" if result.n is None else f"n = {result.n:,}"
        found = f"power {result.power:g} needs {rows_needed}"
    else:
        heading, last = "Power of a calibration test", result.points[-1]
        found = f"power {percent(last.power, 1)}, n = {last.n:,}"
        low, high = last.interval
        answer = (
            f"With {counted(last.n, 'row')} the power is {percent(last.power, 1)} (95% interval "
            f"{percent(low, 1)} to {percent(high, 1)}, from "
            f"{counted(last.n_datasets, 'simulated data set')})."
        )
    text = paragraph(answer) + paragraph(_CAUTION)
    brief = f"{shown(result.statistic)}: {found}, level {result.alpha:g}"
    return page(heading, rows, table, text, notes=result.warnings, headline=answer, brief=brief)


def _between(interval: Interval) -> str:
    low, high = interval
    return f"{percent(low, 1)} to {percent(high, 1)}"


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
            f"{wanted} is already reached with min_n = {result.min_n:,} rows, where the test rejects "
            f"{percent(first.power, 1)} of {counted(first.n_datasets, 'data set')}; fewer may suffice."
        )
    if result.interval == (None, None):
        return (
            f"{wanted} needs {counted(result.n, 'row')} by the fitted curve, but the simulation is too "
            f"small to be sure: fewer than {result.min_n:,} or more than {result.max_n:,} rows are "
            "possible. Simulate more data sets, or allow more rows."
        )
    low, high = result.interval
    start = f"{low:,}" if low is not None else f"fewer than {result.min_n:,}"
    end = f"{high:,}" if high is not None else f"more than {result.max_n:,}"
    between = f"95% interval of the simulation: {start} to {end}"
    return f"{wanted} needs {counted(result.n, 'row')} ({between})."
