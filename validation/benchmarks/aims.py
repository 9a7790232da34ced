"""What was aimed at, beside what was measured.

Aims of time were set on one machine, as shares of what the same work took there before. Where an older
checkout was measured in turn with this one, they are compared as shares, which another machine changes
little; otherwise in seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from validation.benchmarks.cases import (
    AUDIT,
    AUDIT_OF_GROUPS,
    BINARY_TEST,
    BY_FEATURES,
    COMPILED,
    DEFAULT_CSV,
    DEFAULT_TEST,
    DEPENDENT,
    EACH_ALONE,
    ECD_FILE,
    FEW_ROWS,
    FIRST_TIME,
    FULL_TEST,
    IMPORT,
    IN_CLUSTERS,
    KS,
    KUIPER,
    LOW_RANK_FILE,
    LOW_RANK_TEST,
    SMOOTH_ECE,
    SPIEGELHALTER,
    TOP_ECE,
    TOP_MMCE,
    WEIGHTED,
    title,
)
from validation.benchmarks.growth import SERIES
from validation.benchmarks.store import Row


class Aim(NamedTuple):
    """At most so many seconds, or megabytes, of a case."""

    what: str
    n: int
    m: int
    jobs: int
    most: float
    was: float | None = None  #: Seconds before, on the machine that the aim was set on.
    column: str = "best_s"

    def __str__(self) -> str:
        return title(self.what, "caltest", self.n, self.m, self.jobs)


AIMS = (
    Aim(DEFAULT_TEST, 20_000, 1_000, 1, 6.0, 50.0),
    Aim(AUDIT, 20_000, 1_000, 2, 6.0, 27.0),
    Aim(DEFAULT_TEST, 4_000, 10, 1, 1.0, 3.2),
    Aim(DEFAULT_TEST, 10_000, 2, 1, 1.5, 6.1),
    Aim(DEFAULT_TEST, 100_000, 10, 1, 4.0, 12.9),
    Aim(AUDIT, 100_000, 10, 2, 2.5, 7.3),
    Aim(AUDIT_OF_GROUPS, 150_000, 10, 2, 30.0),
    Aim(BY_FEATURES, 10_000, 2, 2, 5.0),
    Aim(BY_FEATURES, 100_000, 2, 2, 40.0),
    Aim(BY_FEATURES, 1_000_000, 2, 2, 480.0),
    Aim(BY_FEATURES, 1_000_000, 2, 2, 2_500.0, column="memory_mb"),
    Aim("SKCE_uq, TV, median heuristic", 1_000, 1_000, 1, 0.090, 0.475),
    Aim(FULL_TEST, 10_000, 10, 1, 3.0, 10.2),
    Aim(ECD_FILE, 1_000_000, 10, 2, 3.0, 10.0),
    Aim(LOW_RANK_FILE, 1_000_000, 10, 2, 12.0, 43.0),
    Aim(DEFAULT_CSV, 2_000_000, 10, 1, 40.0, 131.0),
    Aim(DEFAULT_CSV, 2_000_000, 10, 1, 300.0, column="memory_mb"),
    Aim(SPIEGELHALTER, 10_000, 2, 1, 0.0005),
    Aim(FEW_ROWS, 100, 10, 1, 0.0003),
    Aim(IMPORT, 0, 0, 1, 0.1),
    Aim(FIRST_TIME, 0, 0, 1, 6.0),
    Aim(COMPILED, 0, 0, 1, 2.5),
    Aim("SKCE_uq, TV", 1_000, 10, 1, 0.003),
    Aim("SKCE_uq, TV", 50_000, 10, 1, 300.0, column="memory_mb"),
    Aim("SKCE_uq, Gaussian", 1_000, 1_000, 1, 0.025),
    Aim("SKCE_uq, Gaussian", 50_000, 10, 1, 300.0, column="memory_mb"),
    Aim(LOW_RANK_FILE, 1_000_000, 10, 2, 1000.0, column="memory_mb"),
    Aim(ECD_FILE, 1_000_000, 10, 2, 1000.0, column="memory_mb"),
    Aim(LOW_RANK_TEST, 50_000, 1_000, 2, 4000.0, column="memory_mb"),
)

#: What, n, m, whose: at least so many times as fast.
RATIOS = (
    (BINARY_TEST, 1_000, 2, "probcal", 100.0),
    (BINARY_TEST, 5_000, 2, "probcal", 100.0),
    (SPIEGELHALTER, 50_000, 2, "mapie", 0.25),
    (KS, 50_000, 2, "mapie", 1.0),
    (KUIPER, 50_000, 2, "mapie", 1.0),
    (TOP_ECE, 50_000, 10, "netcal", 3.0),
    (SMOOTH_ECE, 10_000, 2, "relplot", 5.0),
    (TOP_MMCE, 1_000, 10, "netcal", 15.0),
    (TOP_MMCE, 10_000, 10, "netcal", 15.0),
)

#: Of the default test of rows alone, at most so many times as long.
SHARES = ((IN_CLUSTERS, 1.0), (EACH_ALONE, 1.0), (WEIGHTED, 1.1))


def aims(
    times: Sequence[Row], growth: Sequence[Row], before: Sequence[Row] = ()
) -> list[dict[str, str]]:
    """Return all aims of which something was measured."""
    return [
        *_alone(times, before),
        *_of_dependent(times),
        *_beside_peers(times),
        *_of_growth(growth),
    ]


def _alone(times: Sequence[Row], before: Sequence[Row]) -> Iterator[dict[str, str]]:
    for aim in AIMS:
        key = {"what": aim.what, "n": aim.n, "m": aim.m, "jobs": aim.jobs}
        paired = _row(before, **key) if aim.was else None
        row = _row(times, by="caltest", **key)
        if paired is not None and aim.was:
            most, share = aim.most / aim.was, float(paired["ratio"])
            measured = (
                f"{share:.2g} of before: {seconds(paired['before_s'])}, now {seconds(paired['now_s'])}"
            )
            yield _line(str(aim), f"≤ {most:.2g} of before", measured, share / most)
        elif row is not None:
            value = float(row[aim.column])
            if aim.column == "best_s":
                yield _line(str(aim), f"≤ {seconds(aim.most)}", seconds(value), value / aim.most)
            else:
                yield _line(f"{aim}: memory", f"≤ {aim.most:g} MB", f"{value:.0f} MB", value / aim.most)


def _of_dependent(times: Sequence[Row]) -> Iterator[dict[str, str]]:
    for what, most in SHARES:
        for n, m in DEPENDENT:
            key = {"by": "caltest", "n": n, "m": m, "jobs": 1}
            this, alone = (_row(times, what=each, **key) for each in (what, DEFAULT_TEST))
            if this and alone and this["run"] == alone["run"]:
                ratio = float(this["best_s"]) / float(alone["best_s"])
                name = f"{title(what, 'caltest', n, m, 1)}: times as long as without"
                yield _line(name, f"≤ {most:g}", f"{ratio:.3g}", ratio / most)


def _beside_peers(times: Sequence[Row]) -> Iterator[dict[str, str]]:
    for what, n, m, by, least in RATIOS:
        key = {"what": what, "n": n, "m": m, "jobs": 1}
        ours, theirs = (_row(times, by=who, **key) for who in ("caltest", by))
        if ours and theirs and ours["run"] == theirs["run"]:
            ratio = float(theirs["best_s"]) / float(ours["best_s"])
            name = f"{title(what, 'caltest', n, m, 1)}: times as fast as {by}"
            yield _line(name, f"≥ {least:g}", f"{ratio:.3g}", least / ratio)


def _of_growth(growth: Sequence[Row]) -> Iterator[dict[str, str]]:
    for series in SERIES:
        for row in growth:
            for of, most in (("time", series.most_time), ("memory", series.most_memory)):
                if row["what"] == series.what and most is not None:
                    name = f"{series.what}, m = {series.m}: exponent of {of}"
                    value = float(row[of])
                    yield _line(name, f"≤ {most:g}", f"{value:.2f}", value / most)


def _row(rows: Sequence[Row], **key: object) -> Row | None:
    for row in rows:
        if not row["reason"] and all(row[name] == str(value) for name, value in key.items()):
            return row
    return None


def seconds(time: float | str) -> str:
    """Return a time in three digits."""
    number = float(time)
    return f"{number:.3g} s" if number >= 0.1 else f"{1e3 * number:.3g} ms"


def _line(work: str, aim: str, measured: str, times: float) -> dict[str, str]:
    """Return a line of the table; ``times`` is how many times the aim was taken."""
    reached = "reached" if times <= 1.0 else f"{times:.2g} times the aim"
    return {"work": work, "aim": aim, "measured": measured, "": reached}
