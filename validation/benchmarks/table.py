"""The Markdown table, from the CSV files alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from validation.benchmarks import store
from validation.benchmarks.aims import aims, seconds
from validation.benchmarks.store import Row

_HEAD = """# Time, memory and growth

Written by `python -m validation.benchmarks` from `benchmarks_*.csv`. Every line is a process of its
own. Time is the best of several runs, the median in brackets. Memory is the peak during the first run
above what a process holds that has only loaded the input. All packages have as many threads as workers
are stated, one unless said.

*limit*: time divided by the least that the same arithmetic takes at this core's measured rates, in
float64 / float32. Of pairs of rows: one exponential and one inner product of m numbers each; total
variation (TV) is no product and comes on top. Of an exact p-value: besides, the quadratic form of m − 1
columns a draw through half of the matrix, and n uniform numbers a draw (below 1 where only pairs of one
class are added). Of ECD, of ECE and of two classes: those numbers.
*peers*: how many times as long other packages take that return the same number of the same input.
"""

_PEERS = """
## Other packages on the same input

*times*: their time by ours, both with one thread. *value*: "same" to 1e-6. What is another number by
definition, and why, says `validation/benchmarks/peers.py`.
"""


_BEFORE = """
## Before and now

An older checkout of caltest and another package in turn with this one, on the same input: the best of
{pairs} processes of each, or of one where a run takes long.
"""

_LOOPS = """
## Compiled loops

Nanoseconds of one core for one elementary operation, by the number of classes; in brackets the plain
way, with NumPy and SciPy.
"""


def written(folder: Path) -> str:
    """Return the whole page, from the files of a folder."""
    times, growth = store.times(folder).rows, store.growth(folder).rows
    before, loops = store.before(folder).rows, store.loops(folder).rows
    findings = store.findings(folder).rows
    machines, limits = store.machine(folder).rows, store.limits(folder).rows
    parts = [_HEAD, _machine(machines, limits, [*times, *loops])]
    reached = aims(before, growth)
    if reached:
        parts += ["\n## Aims\n", markdown(reached)]
    ours = [row for row in times if row["by"] == "caltest"]
    if ours:
        parts += ["\n## caltest\n", markdown([_own(row, times) for row in ours])]
    if before:
        most = max((row["pairs"] for row in before), default="")
        parts += [_BEFORE.format(pairs=most), markdown([_paired(row) for row in before])]
    if loops:
        parts += [_LOOPS, of_loops(loops)]
    theirs = [row for row in times if row["by"] != "caltest"]
    if theirs:
        parts += [_PEERS, markdown([_peer(row, times) for row in theirs])]
    if findings:
        parts += ["\n## Found in other packages\n", "\n".join(map(_finding, findings))]
    if growth:
        parts += ["\n## Growth\n\nSlopes on logarithmic scales.\n", of_growth(growth)]
    return "\n".join(parts) + "\n"


def of_loops(loops: Sequence[Row]) -> str:
    """Return the table of the compiled loops: a line a loop, a column a number of classes."""
    sizes = sorted({int(row["m"]) for row in loops})
    lines = []
    for name in dict.fromkeys(row["loop"] for row in loops):
        of_name = {int(row["m"]): row for row in loops if row["loop"] == name}
        first = next(iter(of_name.values()))
        cells = {f"m = {m}": _nanoseconds(of_name[m]) if m in of_name else "" for m in sizes}
        lines.append({"loop": f"`{name}`", "one": first["one"], **cells, "plain way": first["plain"]})
    return markdown(lines)


def _nanoseconds(row: Row) -> str:
    both = (float(row[f"{way}_ns"]) for way in ("compiled", "plain"))
    compiled, plain = (f"{x:.2g}" if x < 99.5 else f"{x:.0f}" for x in both)
    return f"{compiled} ({plain})"


def of_growth(growth: Sequence[Row]) -> str:
    """Return the table of exponents."""
    return markdown([_growth(row) for row in growth])


def markdown(rows: Sequence[Mapping[str, str]]) -> str:
    """Return rows of one set of columns as a Markdown table, without importing caltest for it."""
    head = list(rows[0])
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    cells = (" | ".join(row[name].replace("|", "\\|") for name in head) for row in rows)
    return "\n".join([*lines, *(f"| {each} |" for each in cells)])


def _machine(machines: Iterable[Row], limits: Iterable[Row], measured: Sequence[Row]) -> str:
    said = ""
    for row in machines:
        groups = dict.fromkeys(x.get("group", "loops") for x in measured if x["run"] == row["run"])
        if groups:
            said += (
                f"Measured on {row['processor']}, {row['cores']} cores, Python {row['python']}, NumPy "
                f"{row['numpy']}, Numba {row['numba']}; load at the start {float(row['load']):.1f}: "
                f"{', '.join(groups)}.\n\n"
            )
    rates = ", ".join(f"{row['what']} {float(row['per_second']):.2e}" for row in limits)
    return (
        f"{said}Rates of one core of the last of these, a second (products in floating-point "
        f"operations): {rates}."
    )


def _own(row: Row, times: Sequence[Row]) -> dict[str, str]:
    peers = [
        f"{other['by']} {float(other['best_s']) / float(row['best_s']):.2g}"
        for other in _same_input(row, times)
        if not row["reason"] and _same_value(row, other)
    ]
    return {
        "what": row["what"],
        "n": _whole(row["n"]),
        "m": row["m"],
        "workers": row["jobs"],
        **_measured(row),
        "limit": _limit(row),
        "peers": ", ".join(peers),
    }


def _peer(row: Row, times: Sequence[Row]) -> dict[str, str]:
    ours = [other for other in _same_input(row, times) if other["jobs"] == "1"]
    known = bool(ours) and not row["reason"]
    return {
        "what": row["what"],
        "package": f"{row['by']} {row['version']}".strip(),
        "n": _whole(row["n"]),
        "m": row["m"],
        **_measured(row),
        "times": f"{float(row['best_s']) / float(ours[0]['best_s']):.3g}" if known else "",
        "our memory": _megabytes(ours[0]) if known else "",
        "value": _compared(ours[0], row, "value") if known else "",
        "p, ours": _compared(ours[0], row, "pvalue") if known else "",
    }


def _paired(row: Row) -> dict[str, str]:
    about = {"what": row["what"], "n": _whole(row["n"]), "m": row["m"], "workers": row["jobs"]}
    values = [
        (float(row[f"before_{name}"] or 0.0), float(row[f"now_{name}"] or 0.0))
        for name in ("value", "pvalue")
    ]
    same = all(abs(a - b) <= 1e-5 * max(abs(a), abs(b)) for a, b in values)
    times = [seconds(each) if each else "" for each in (row["before_s"], row["now_s"], row["peer_s"])]
    sizes = [f"{float(each):.0f} MB" if each else "" for each in (row["before_mb"], row["now_mb"])]
    return about | {
        "before": times[0],
        "now": times[1] or f"not measured: {row['reason']}",
        "times as fast": f"{1.0 / float(row['ratio']):.3g}" if row["ratio"] else "",
        "memory before": sizes[0],
        "memory now": sizes[1],
        "numbers": "" if values == [(0.0, 0.0)] * 2 or not times[0] else "same" if same else "another",
        "the other": f"{row['by']} {row['version']}: {times[2]}" if times[2] else "",
        "load": f"{float(row['load']):.1f}",
    }


def _measured(row: Row) -> dict[str, str]:
    if row["reason"]:
        return {"time": f"not measured: {row['reason']}", "memory": ""}
    time = seconds(float(row["best_s"]))
    if int(row["runs"]) > 1:
        time += f" ({seconds(float(row['median_s']))})"
    return {"time": time, "memory": _megabytes(row)}


def _same_input(row: Row, times: Iterable[Row]) -> list[Row]:
    """Return the other side's rows of the same run and input, those that were measured."""
    side: Callable[[Row], bool] = lambda other: other["by"] == "caltest"  # noqa: E731
    return [
        other
        for other in times
        if all(other[name] == row[name] for name in ("what", "n", "m", "run"))
        and side(other) != side(row)
        and not other["reason"]
    ]


def _same_value(one: Row, other: Row) -> bool:
    if not one["value"] or not other["value"]:
        return False
    a, b = float(one["value"]), float(other["value"])
    return abs(a - b) <= 2e-6 * max(abs(a), abs(b))


def _compared(ours: Row, theirs: Row, name: str) -> str:
    if not theirs[name] or not ours[name]:
        return ""
    if name == "value":
        if _same_value(ours, theirs):
            return "same"
        return f"{float(theirs[name]):.4g}, ours {float(ours[name]):.4g}"
    return f"{float(theirs[name]):.3g}, {float(ours[name]):.3g}"


def _limit(row: Row) -> str:
    if not row["limit_s"] or row["reason"]:
        return ""
    time = float(row["best_s"])
    return " / ".join(f"{time / float(row[name]):.2g}" for name in ("limit_s", "limit32_s"))


def _growth(row: Row) -> dict[str, str]:
    sizes = [_whole(size) for size in row["sizes"].split()]
    return {
        "what": row["what"],
        "m": row["m"],
        "over": row["over"],
        "sizes": ", ".join(sizes),
        "exponent of time": f"{float(row['time']):.2f}",
        "exponent of memory": f"{float(row['memory']):.2f}",
    }


def _finding(row: Row) -> str:
    who = f"* {row['by']} {row['version']}".rstrip()
    if row["reason"]:
        return f"{who}: `{row['name']}` was not run: {row['reason']}"
    doubt = "" if row["shown"] == "True" else " Not shown by this version."
    return f"{who}: {row['claim']} ({row['numbers']}).{doubt}"


def _whole(digits: str) -> str:
    return f"{int(digits):,}".replace(",", " ")


def _megabytes(row: Row) -> str:
    return f"{float(row['memory_mb']):.0f} MB"
