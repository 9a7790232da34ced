"""Numbers on the pages of the documentation: each stands between marks that say what it is.

``<!-- time: SKCE_uq, TV, n = 1 000, m = 10 -->2.3 ms<!-- -->`` shows as "2.3 ms". The marks name a case
as ``--list`` does, and `rewritten` puts there what the CSV files say. There are ``time``, ``memory``,
``exponents`` (of the growth of memory), ``loop`` and ``plain`` (nanoseconds, "cityblock, m = 10"),
``machine`` (a column) and ``table`` ("loops", "aims", "growth").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from validation.benchmarks import store, table
from validation.benchmarks.aims import aims
from validation.benchmarks.cases import title
from validation.benchmarks.store import Row

DOCS = Path(__file__).resolve().parents[2] / "docs"
MISSING = "not measured"

MARK = re.compile(r"(<!-- (?!results:)(\w+): ([^\n]*?) -->)(.*?)(<!-- -->)", re.DOTALL)


def rewritten(text: str, results: Path) -> tuple[str, list[str]]:
    """Return a page with the numbers of the results, and the marks of what was not measured."""
    shown, missing = _shown(results), []

    def replaced(mark: re.Match[str]) -> str:
        kind, name = mark[2], mark[3]
        if kind not in shown:
            raise ValueError(f"there is no {kind} to show: {mark[1]}")
        found = shown[kind](name)
        if found is None:
            missing.append(f"{kind}: {name}")
        return f"{mark[1]}{found or MISSING}{mark[5]}"

    return MARK.sub(replaced, text), missing


def pages(folder: Path = DOCS) -> list[Path]:
    """Return the pages that have marks."""
    built = {"generated", "gallery", "_build"}
    found = [page for page in sorted(folder.rglob("*.md")) if not built & set(page.parts)]
    return [page for page in found if MARK.search(page.read_text("utf-8"))]


def rewrite(results: Path, say: Callable[[str], None] = print) -> None:
    """Write the pages again where a number changed."""
    for page in pages():
        before = page.read_text(encoding="utf-8")
        after, missing = rewritten(before, results)
        if after != before:
            page.write_text(after, encoding="utf-8")
        for mark in dict.fromkeys(missing):
            say(f"{page.name} shows what was not measured: {mark}")


def _shown(results: Path) -> dict[str, Callable[[str], str | None]]:
    """Return what finds a number by its name, for every kind."""
    times = {_title(row): row for row in store.times(results).rows if not row["reason"]}
    exponents = store.growth(results).rows
    growth = {row["what"]: row for row in exponents}
    loops = store.loops(results).rows
    by_name = {f"{row['loop']}, m = {row['m']}": row for row in loops}
    machines = {row["run"]: row for row in store.machine(results).rows}
    machine = machines.get(loops[0]["run"], {}) if loops else {}

    before = store.before(results).rows
    reached = aims(before, [])
    tables: dict[str, Callable[[], str]] = {}
    if loops:
        tables["loops"] = lambda: table.of_loops(loops)
    if exponents:
        tables["growth"] = lambda: table.of_growth(exponents)
    if reached:
        tables["aims"] = lambda: f"{_when(before, machines)}\n\n{table.markdown(reached)}"

    def of(rows: dict[str, Row], write: Callable[[Row], str]) -> Callable[[str], str | None]:
        return lambda name: write(rows[name]) if name in rows else None

    return {
        "time": of(times, lambda row: short(float(row["best_s"]))),
        "memory": of(times, lambda row: megabytes(float(row["memory_mb"]))),
        "exponent": of(growth, lambda row: f"{float(row['memory']):.2f}"),
        "loop": of(by_name, lambda row: f"{float(row['compiled_ns']):.2g} ns"),
        "plain": of(by_name, lambda row: f"{float(row['plain_ns']):.2g} ns"),
        "machine": lambda name: machine.get(name) or None,
        "table": lambda name: f"\n\n{tables[name]()}\n\n" if name in tables else None,
    }


def _when(rows: Sequence[Row], machines: Mapping[str, Row]) -> str:
    runs = [machines[run] for run in dict.fromkeys(row["run"] for row in rows) if run in machines]
    said = dict.fromkeys(
        f"{each['run'][:10]}, {each['processor']}, {each['cores']} cores, Python {each['python']}, "
        f"NumPy {each['numpy']}, Numba {each['numba']}"
        for each in runs
    )
    busy = max((float(row["load"]) for row in rows), default=0.0)
    return f"Measured on {'; '.join(said)}; load at most {busy:.1f}."


def _title(row: Row) -> str:
    return title(row["what"], row["by"], *(int(row[name]) for name in ("n", "m", "jobs")))


def short(seconds: float) -> str:
    """Return a time in two digits and a unit that suits it.

    Examples
    --------
    >>> short(0.00312), short(0.25), short(43.4), short(720)
    ('3.1 ms', '0.25 s', '43 s', '12 minutes')
    """
    if seconds >= 180.0:
        return f"{seconds / 60.0:.0f} minutes"
    if seconds >= 0.1:
        return f"{seconds:.2g} s" if seconds < 99.5 else f"{seconds:.0f} s"
    return f"{1e3 * seconds:.2g} ms"


def megabytes(number: float) -> str:
    """Return memory in two digits.

    Examples
    --------
    >>> megabytes(247.3), megabytes(1729)
    ('250 MB', '1.7 GB')
    """
    return f"{number / 1e3:.2g} GB" if number >= 995.0 else f"{float(f'{number:.2g}'):.0f} MB"
