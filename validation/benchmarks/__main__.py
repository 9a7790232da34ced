"""Time, peak memory, the machine's limits, other packages on the same input, and growth.

``python -m validation.benchmarks`` measures all but the slowest, in about half an hour on two cores,
and writes ``benchmarks_*.csv``, ``loops.csv`` and ``benchmarks.md`` to validation/results, and times on
the pages of docs. Rows come as they are measured. A case that another run measured stays until it is
measured again; ratios are of one run. Nobody else should use the machine: its load is written beside
every row, and where it is not idle at the start, that is said.

* ``--full``: a million rows, and all of a thousand classes too;
* ``--quick``: everything with few rows, in a temporary folder unless ``--out`` is given;
* ``--only NAME``: a group (speed, overhead, estimate, exact, moments, default, scale, dependent,
  others, hundreds, growth, peers, findings, limits, loops), a package, or part of a name;
* ``--before DIR``: instead, what is ours with an older checkout, and the peer's, in turn with this one:
  two processes of each, one of cases that take long. Writes ``benchmarks_before.csv``; with ``--only
  speed --peers`` these are the aims of docs/scale.md;
* ``--peers``: make an environment of each other package in build/peers, with pip;
  ``--peers-python PATH``: take one that is there and has all. Without, their rows say
  that there is none;
* ``--table``: only write benchmarks.md and the times on the pages again.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import perf_counter

from validation.benchmarks import before, pages, store, table
from validation.benchmarks.cases import cases, wanted
from validation.benchmarks.environment import made
from validation.benchmarks.findings import FINDINGS
from validation.benchmarks.growth import SERIES, draw, exponents
from validation.benchmarks.limits import machine
from validation.benchmarks.peers import PACKAGES
from validation.benchmarks.runner import ROOT, SECONDS, Runner, load

RESULTS = ROOT / "validation" / "results"
GROUPS = ("limits", "loops", "findings")  # that are no cases
IDLE = 0.5  # load up to which nobody else is there


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
    parser.add_argument(
        "--table", action="store_true", help="write the table and the pages again, measure nothing"
    )
    parser.add_argument("--before", type=Path, metavar="DIR", help="an older checkout, in turn")
    peers = parser.add_mutually_exclusive_group()
    peers.add_argument("--peers", action="store_true", help="install the other packages")
    peers.add_argument("--peers-python", type=Path, metavar="PATH", help="a Python that has them")
    options = parser.parse_args(arguments)
    if options.peers_python and not options.peers_python.exists():
        parser.error(f"there is no {options.peers_python}")
    if options.before and not (options.before / "caltest" / "__init__.py").exists():
        parser.error(f"{options.before} is no checkout of caltest: it has no caltest/__init__.py")
    options.cases = wanted(options.only, full=options.full, quick=options.quick)
    if not options.cases and not set(options.only) & set(GROUPS):
        parser.error(f"nothing is called {' or '.join(options.only)}; --list lists the cases")
    if options.out is None:
        options.out = Path(tempfile.mkdtemp(prefix="benchmarks-")) if options.quick else RESULTS
    return options


def measure(options: argparse.Namespace, say: partial[None]) -> None:
    """Measure all that is wanted, and write it."""
    needed = {case.by for case in options.cases} - {"caltest"}
    if not options.only or {"findings", "peers"} & set(options.only):
        needed |= {package for package, _ in FINDINGS.values()}
    pythons, failed = made(sorted(needed), say=say) if options.peers else ({}, {})
    if options.peers_python:
        pythons = dict.fromkeys(PACKAGES, options.peers_python)
    times, findings = store.times(options.out), store.findings(options.out)
    if not options.quick:
        times.keep(case.key for case in cases())
    findings.keep((name,) for name in FINDINGS)
    busy = load()
    if busy > IDLE:
        say(f"warning: the load is {busy:.1f}; others use this machine, and times are too long")
    with tempfile.TemporaryDirectory(prefix="benchmarks-input-") as folder:
        runner = Runner(
            folder=Path(folder),
            run=datetime.now(UTC).isoformat(timespec="seconds"),
            peers=pythons,
            failed=failed,
            timeout=1800.0 if options.full else 600.0,
            seconds=0.05 if options.quick else SECONDS,
            say=say,
        )
        store.machine(options.out).put(run=runner.run, load=busy, **machine())
        if options.before:
            older = store.before(options.out)
            if not options.quick:
                older.keep((case.what, case.n, case.m, case.jobs) for case in cases())
            before.compare(runner, options.before.resolve(), options.cases, older)
            return
        rates = runner.limits(store.limits(options.out))
        if not options.only or "loops" in options.only:
            runner.loops(store.loops(options.out))
        runner.cases(options.cases, times, rates)
        if not options.only or {"findings", "peers"} & set(options.only):
            runner.findings(findings)


def tabulate(out: Path) -> Path:
    """Write growth and the table from the rows that there are."""
    growth = store.growth(out)
    growth.keep((series.what, series.over) for series in SERIES)
    for series in SERIES:
        found = exponents(store.times(out).rows, series)
        if found is not None:
            growth.put(**found)
    draw(store.times(out).rows, out / "benchmarks_growth.png")
    page = out / "benchmarks.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(table.written(out), encoding="utf-8")
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
        page = tabulate(options.out)
        if options.out.resolve() == RESULTS:
            pages.rewrite(RESULTS, say)
        say(f"{page}, after {perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
