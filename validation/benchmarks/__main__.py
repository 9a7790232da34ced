"""Time, peak memory, the machine's limits, other packages on the same input, and growth.

``python -m validation.benchmarks`` measures all but the slowest, in about ten minutes on two cores, and
writes ``benchmarks_*.csv`` and ``benchmarks.md`` to validation/results. Rows come as they are measured.
A case that another run measured stays until it is measured again; ratios are of one run.

* ``--full``: a million rows, and a thousand classes too;
* ``--quick``: everything with few rows, in a temporary folder unless ``--out`` is given;
* ``--only NAME``: a group (estimate, exact, moments, scale, growth, peers, findings, limits), a
  package, or part of a name;
* ``--peers``: make an environment of the other packages in build/peers, with pip;
  ``--peers-python PATH``: take one that is there. Without, their rows say that there is none.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import perf_counter

from validation.benchmarks import store, table
from validation.benchmarks.cases import cases, wanted
from validation.benchmarks.environment import made
from validation.benchmarks.findings import FINDINGS
from validation.benchmarks.growth import SERIES, exponents
from validation.benchmarks.runner import ROOT, SECONDS, Runner
from validation.benchmarks.store import Store

RESULTS = ROOT / "validation" / "results"
GROUPS = ("limits", "findings")  # that are no cases


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(
        prog="python -m validation.benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="few rows, to see that everything runs")
    parser.add_argument("--full", action="store_true", help="the slow cases too")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="groups or names")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where results go")
    parser.add_argument("--list", action="store_true", help="list the cases, measure nothing")
    parser.add_argument("--table", action="store_true", help="write the table again, measure nothing")
    peers = parser.add_mutually_exclusive_group()
    peers.add_argument("--peers", action="store_true", help="install the other packages")
    peers.add_argument("--peers-python", type=Path, metavar="PATH", help="a Python that has them")
    options = parser.parse_args(arguments)
    if options.peers_python and not options.peers_python.exists():
        parser.error(f"there is no {options.peers_python}")
    options.cases = wanted(options.only, full=options.full, quick=options.quick)
    if not options.cases and not set(options.only) & set(GROUPS):
        parser.error(f"nothing is called {' or '.join(options.only)}; --list lists the cases")
    if options.out is None:
        options.out = Path(tempfile.mkdtemp(prefix="benchmarks-")) if options.quick else RESULTS
    return options


def measure(options: argparse.Namespace, say: partial[None]) -> None:
    """Measure all that is wanted, and write it."""
    python, failed = made(say=say) if options.peers else (options.peers_python, {})
    times = Store(options.out / "benchmarks_times.csv", store.TIMES, store.TIMES_KEY)
    limits = Store(options.out / "benchmarks_limits.csv", store.LIMITS, store.LIMITS_KEY)
    findings = Store(options.out / "benchmarks_findings.csv", store.FINDINGS, store.FINDINGS_KEY)
    if not options.quick:
        times.keep(case.key for case in cases())
    findings.keep((name,) for name in FINDINGS)
    with tempfile.TemporaryDirectory(prefix="benchmarks-input-") as folder:
        runner = Runner(
            folder=Path(folder),
            run=datetime.now(UTC).isoformat(timespec="seconds"),
            peers=python,
            failed=failed,
            timeout=1800.0 if options.full else 600.0,
            seconds=0.05 if options.quick else SECONDS,
            say=say,
        )
        rates = runner.limits(limits)
        runner.cases(options.cases, times, rates)
        if not options.only or {"findings", "peers"} & set(options.only):
            runner.findings(findings)


def tabulate(out: Path) -> Path:
    """Write growth and the table from the rows that there are."""
    times = Store(out / "benchmarks_times.csv", store.TIMES, store.TIMES_KEY).rows
    limits = Store(out / "benchmarks_limits.csv", store.LIMITS, store.LIMITS_KEY).rows
    findings = Store(out / "benchmarks_findings.csv", store.FINDINGS, store.FINDINGS_KEY).rows
    growth = Store(out / "benchmarks_growth.csv", store.GROWTH, ("what",))
    growth.keep((series.what,) for series in SERIES)
    for series in SERIES:
        found = exponents(times, series)
        if found is not None:
            growth.put(**found)
    page = out / "benchmarks.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(table.written(times, limits, growth.rows, findings), encoding="utf-8")
    return page


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, write, and say where."""
    options = parsed(arguments)
    say = partial(print, flush=True)
    if options.list:
        for case in options.cases:
            say(f"{case.group}: {case}")
        return
    start = perf_counter()
    try:
        if not options.table:
            measure(options, say)
    finally:
        say(f"{tabulate(options.out)}, after {perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
