"""The audit: family-wise error, power beside Holm and Benjamini–Hochberg, time and memory.

``python -m validation.audit size --repetitions 1000``: calibrated data sets (Dirichlet(1, 1, 1), 25
rows a group) with 4, 16 and 64 groups; share in which the audit rejects at .05, beside the share in
which the smallest p-value does that nobody adjusted. Statistics "ecd" of the full vector and of the top
label, "ks" of the top label: 3 (1 + groups) hypotheses, 199 draws. ``size_default``: all lenses and
default statistics.

``python -m validation.audit power --repetitions 200``: one of 16 groups overconfident (temperature
0.8, or 0.9), the others calibrated, n = 8 000, ten classes, the same statistics, 51 hypotheses, 2 047
draws (fewer would not let Holm's procedure find anything); share of data sets in which the wrong group
is found (itself, not only as part of all rows), and in which another group is, by Westfall and Young,
Holm and Benjamini–Hochberg from the same draws.

``python -m validation.audit speed``: seconds and peak memory of a whole audit with its bounds.

Bounds are left out of size and power, which they do not enter.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
from collections.abc import Iterable, Sequence
from functools import partial
from time import perf_counter
from typing import Any
from unittest.mock import patch

import joblib
import numpy as np
from scipy.stats import binomtest
from threadpoolctl import threadpool_limits

import caltest
from caltest._parallel import ALONE
from caltest.auditing import audits
from caltest.auditing.draws import answers, draw_all
from caltest.auditing.groups import read_groups
from caltest.auditing.options import Options
from caltest.auditing.plan import make_plan
from caltest.data import sample
from caltest.nulls.base import Trial
from caltest.sampling import seed_of
from caltest.simulation import tempered
from validation._study import CONFIDENCE, ROOT, command_line, markdown, write_csv

LEVEL = 0.05
ROWS_OF_A_GROUP = 25
LENSES = ("canonical", "top_label")
STATISTICS = ("ecd", "ks")
CORRECTIONS = ("westfall_young", "holm", "fdr_bh")


def rate(found: int, of: int, name: str) -> dict[str, Any]:
    """Return a share with its Clopper–Pearson interval."""
    interval = binomtest(found, of).proportion_ci(CONFIDENCE)
    return {
        name: round(found / of, 4),
        f"{name}_low": round(interval.low, 4),
        f"{name}_high": round(interval.high, 4),
    }


def named(codes: np.ndarray) -> np.ndarray:
    """Return the names of groups: many different numbers would be cut into ranges."""
    return np.char.add("group ", codes.astype(str))


# ------------------------------------------------------------------ size


def smallest(groups: int, default: bool, seed: np.random.SeedSequence) -> tuple[float, float, int]:
    """Audit one calibrated data set; return its p-value, the smallest unadjusted one, and how many."""
    data, draws = seed.spawn(2)
    n = groups * ROWS_OF_A_GROUP
    drawn = tempered(n, np.ones(3), temperature=1.0, rng=data)
    options: Any = {} if default else {"lenses": LENSES, "statistics": STATISTICS}
    with threadpool_limits(1), patch.object(audits, "bounded_looks", lambda *_: ((), 0)):
        audit = caltest.audit(
            drawn.probs,
            drawn.labels,
            groups=named(np.arange(n) % groups),
            min_rows=ROWS_OF_A_GROUP,
            n_resamples=199,
            rng=draws,
            **options,
        )
    return audit.pvalue, min(check.pvalue for check in audit.checks), len(audit.checks)


def size(options: argparse.Namespace, default: bool = False) -> Iterable[dict[str, Any]]:
    """Yield the share of rejections for every number of groups."""
    for number, groups in enumerate(options.groups):
        start = perf_counter()
        seeds = np.random.SeedSequence([options.seed, number]).spawn(options.repetitions)
        tasks = (joblib.delayed(smallest)(groups, default, seed) for seed in seeds)
        found = np.array(joblib.Parallel(n_jobs=options.jobs)(tasks))
        print(f"{groups} groups: {perf_counter() - start:.0f} s", flush=True)
        of = len(found)
        yield {
            "groups": groups,
            "hypotheses": int(np.median(found[:, 2])),
            "statistics": "default" if default else "ecd ks",
            "of": of,
            **rate(int((found[:, 0] <= LEVEL).sum()), of, "adjusted"),
            **rate(int((found[:, 1] <= LEVEL).sum()), of, "unadjusted"),
        }


# ------------------------------------------------------------------ power


def who_is_found(
    temperature: float, n: int, resamples: int, seed: np.random.SeedSequence
) -> list[tuple[bool, bool, bool, float]]:
    """Return for every correction: is the wrong group found, all rows, another group; share false."""
    data, other, draws = seed.spawn(3)
    group = np.arange(n) % 16
    wrong = tempered(n, temperature=temperature, rng=data)
    right = tempered(n, temperature=1.0, rng=other)
    bad = group == 0
    probs = np.where(bad[:, None], wrong.probs, right.probs)
    whole = sample(probs, np.where(bad, wrong.labels, right.labels))
    options = Options.of(lenses=LENSES, statistics=STATISTICS, intersections=1)
    plan = make_plan(whole.rows, read_groups(group, n), options)
    with threadpool_limits(1):
        trial = Trial(whole.rows, whole.labels, resamples, seed_of(draws), ALONE)
        *drawn, _ = draw_all(plan.hypotheses, trial)
    sides = [statistic.alternatives[0] for _, statistic in plan.hypotheses]
    names = [look.group.value if look.group else "all" for look, _ in plan.hypotheses]
    rows = []
    for correction in CORRECTIONS:
        adjusted = answers(*drawn, sides, correction).adjusted
        found = [name for name, p in zip(names, adjusted, strict=True) if p <= LEVEL]
        false = [name for name in found if name not in ("all", "0")]
        rows.append(("0" in found, "all" in found, bool(false), len(false) / max(len(found), 1)))
    return rows


def power(options: argparse.Namespace) -> Iterable[dict[str, Any]]:
    """Yield what every correction finds."""
    for place, temperature in enumerate(options.temperatures):
        start = perf_counter()
        seeds = np.random.SeedSequence([options.seed, 100 + place]).spawn(options.repetitions)
        given = (temperature, options.rows or 8000, options.resamples)
        tasks = (joblib.delayed(who_is_found)(*given, seed) for seed in seeds)
        found = np.array(joblib.Parallel(n_jobs=options.jobs)(tasks))
        print(f"temperature {temperature}: {perf_counter() - start:.0f} s", flush=True)
        of = len(found)
        for number, correction in enumerate(CORRECTIONS):
            each = found[:, number]
            yield {
                "temperature": temperature,
                "correction": correction,
                "of": of,
                **rate(int(each[:, 0].sum()), of, "wrong_group_found"),
                "all_rows_found": round(float(each[:, 1].mean()), 4),
                **rate(int(each[:, 2].sum()), of, "another_found"),
                "share_false": round(float(each[:, 3].mean()), 4),
            }


# ------------------------------------------------------------------ speed

CASES: dict[str, dict[str, Any]] = {
    "default": {"n": 10_000, "groups": 20, "options": {}},
    "linear": {
        "n": 50_000,
        "groups": 49,
        "options": {"lenses": LENSES, "statistics": ("ecd", "brier")},
    },
    "tolerance": {"n": 10_000, "groups": 9, "options": {"tolerance": 0.02, "n_resamples": 4499}},
}


def one_case(name: str, rows: int | None, jobs: int) -> None:
    """Audit one data set in this process; print seconds, hypotheses and peak memory in MB."""
    case = CASES[name]
    n, rng = rows or case["n"], np.random.default_rng(0)
    drawn = tempered(n, np.full(10, 0.3), temperature=1.0, rng=1)
    group = named(rng.integers(0, case["groups"], n))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    start = perf_counter()
    audit = caltest.audit(
        drawn.probs, drawn.labels, groups=group, rng=2, n_jobs=jobs, **case["options"]
    )
    seconds = perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(round(seconds, 1), len(audit.checks), peak, before, audit.n_resamples)


def speed(options: argparse.Namespace) -> Iterable[dict[str, Any]]:
    """Yield seconds and peak memory, each case in a process of its own."""
    for name in options.cases:
        command = [sys.executable, "-m", "validation.audit", "case", "--cases", name]
        command += ["--jobs", str(options.jobs)]
        command += ["--rows", str(options.rows)] if options.rows else []
        printed = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout
        seconds, hypotheses, peak, before, draws = printed.split()
        yield {
            "case": name,
            "n": options.rows or CASES[name]["n"],
            "groups": CASES[name]["groups"],
            "hypotheses": hypotheses,
            "draws": draws,
            "jobs": options.jobs,
            "seconds": seconds,
            "peak_mb": peak,
            "before_mb": before,
        }


STUDIES = {"size": size, "size_default": partial(size, default=True), "power": power, "speed": speed}


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options."""
    given = command_line(__doc__, seed=20_261_121)
    given.add_argument("study", choices=[*STUDIES, "case"])
    given.add_argument("--repetitions", type=int, default=1000)
    given.add_argument("--groups", type=int, nargs="+", default=[4, 16, 64], help="of size")
    given.add_argument("--temperatures", type=float, nargs="+", default=[0.8, 0.9], help="of power")
    given.add_argument("--resamples", type=int, default=2047, help="of power")
    given.add_argument("--rows", type=int, help="of power (8000) and speed")
    given.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES), help="of speed")
    return given.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one study; its rows are written as they come."""
    options = parsed(arguments)
    if options.study == "case":
        one_case(options.cases[0], options.rows, options.jobs)
        return
    rows: list[dict[str, Any]] = []
    for row in STUDIES[options.study](options):
        rows.append(row)
        write_csv(rows, options.results / f"audit_{options.study}.csv")
    print(markdown(rows))


if __name__ == "__main__":
    main()
