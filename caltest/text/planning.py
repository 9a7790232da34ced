"""Power and sample size in plain language."""

from __future__ import annotations

import math

from caltest.planning.search import SampleSizeResult
from caltest.planning.simulate import Interval, Simulation
from caltest.text.numbers import percent
from caltest.text.pages import written


def summary(result: Simulation) -> str:
    """Return what was assumed, tested and found."""
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
    facts = {"sized": isinstance(result, SampleSizeResult), "between": _between, "infinity": math.inf}
    return written("planning", result.warnings, s=result, table=table, **facts)


def _between(interval: Interval) -> str:
    low, high = interval
    return f"{percent(low, 1)} to {percent(high, 1)}"
