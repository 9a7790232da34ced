"""What was aimed at, beside what was measured in one run, in turns with the fastest peer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from validation.benchmarks import cases
from validation.benchmarks.cases import title
from validation.benchmarks.growth import SERIES
from validation.benchmarks.store import Row


class Aim(NamedTuple):
    """At most so many seconds of a case, or times the peer's."""

    what: str
    n: int
    m: int
    jobs: int
    most: float
    of_peer: bool = False

    def __str__(self) -> str:
        return title(self.what, "caltest", self.n, self.m, self.jobs)


_PEERS = {
    cases.SPIEGELHALTER: {1_000: 1.3, 10_000: 1.0, 1_000_000: 1.0},
    cases.KS: {1_000: 1.0, 10_000: 1.0, 1_000_000: 1.0},
    cases.KUIPER: {1_000: 1.0, 10_000: 1.0, 1_000_000: 1.0},
    cases.BINS: {1_000: 1.5, 100_000: 1.0},
    cases.DIAGRAM: {1_000: 1.5, 100_000: 1.0},
    cases.CRPS_NORMALS: {1_000: 2.0, 100_000: 1.2},
    cases.CRPS_MEMBERS: {1_000: 2.0, 100_000: 1.2},
    cases.D_CALIBRATION: {1_000: 2.0, 100_000: 2.0},
    cases.RANKS: {1_000: 3.0},
}

AIMS = (
    *(Aim(what, n, 2, 1, most, True) for what, of in _PEERS.items() for n, most in of.items()),
    Aim(cases.AUDIT_OF_COLUMNS, 1_000_000, 2, 2, 14.0),
    Aim(cases.AUDIT_OF_COLUMNS, 100_000, 2, 2, 3.5),
    Aim(cases.AUDIT, 100_000, 10, 2, 4.0),
    Aim(cases.AUDIT_OF_NORMALS, 100_000, 2, 2, 5.0),
    Aim(cases.DEFAULT_TEST, 20_000, 1_000, 1, 6.0),
    Aim(cases.AUDIT, 20_000, 1_000, 2, 12.0),
    Aim(cases.FIRST_AUDIT, 0, 0, 1, 3.0),
    Aim(cases.OF_A_FILE, 0, 0, 1, 1.5),
    Aim(cases.WITH_A_PAGE, 0, 0, 1, 2.2),
    Aim(cases.FIRST_TIME, 0, 0, 1, 7.0),
)


def aims(before: Sequence[Row], growth: Sequence[Row]) -> list[dict[str, str]]:
    """Return all aims of which something was measured, then those of growth."""
    names = ("what", "n", "m", "jobs")
    rows = {tuple(row[name] for name in names): row for row in before}
    lines = [_line(aim, rows.get((aim.what, *map(str, aim[1:4])))) for aim in AIMS]
    for series in SERIES:
        for row in growth:
            for of, most in (("time", series.most_time), ("memory", series.most_memory)):
                if (row["what"], row["over"]) == (series.what, series.over) and most is not None:
                    name = f"{series.what}: exponent of {of} in {series.over}"
                    found = float(row[of])
                    lines.append(_with(name, f"≤ {most:g}", "", f"{found:.2f}", found / most))
    return [line for line in lines if line]


def _line(aim: Aim, row: Row | None) -> dict[str, str]:
    if row is None or not row["now_s"] or (aim.of_peer and not row["peer_s"]):
        return {}
    scale = float(row["peer_s"]) if aim.of_peer else 1.0
    most = f"≤ {aim.most:g} × {row['by']}" if aim.of_peer else f"≤ {aim.most:g} s"
    before, now = (
        "" if not took else _times(float(took) / scale) if aim.of_peer else seconds(took)
        for took in (row["before_s"], row["now_s"])
    )
    return _with(str(aim), most, before, now, float(row["now_s"]) / scale / aim.most)


def _with(work: str, most: str, before: str, now: str, share: float) -> dict[str, str]:
    verdict = "reached" if share <= 1.0 else f"{share:.2g} times the aim"
    return {"work": work, "aim": most, "before": before, "now": now, "": verdict}


def _times(number: float) -> str:
    return f"{number:.2g} ×" if number < 99.5 else f"{number:.0f} ×"


def seconds(time: float | str) -> str:
    """Return a time in three digits."""
    number = float(time)
    return f"{number:.3g} s" if number >= 0.1 else f"{1e3 * number:.3g} ms"
