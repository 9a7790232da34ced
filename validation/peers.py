"""Other packages' p-values on calibrated data beside ours, from what the benchmarks found.

``python -m validation peers`` reads ``benchmarks_findings.csv``, which ``python -m
validation.benchmarks --peers`` writes by running the peers in an environment of their own, and
tests data of the same design by ours: 500 rows, p of class 1 from Beta(0.2, 20) (rare events) and
Beta(1, 1), level .05. Data sets of one label only are left out, as there: the peers cannot take
them; ours is shown with and without them.
"""

from __future__ import annotations

import csv
from functools import partial

import joblib
import numpy as np
from scipy.stats import binomtest

import caltest
from caltest.statistics import LinearSKCE
from validation._cells import Options, Row, seeds, spread
from validation._study import CONFIDENCE, RESULTS, markdown, write_csv

SEED = 20_190_424
ROWS, LEVEL = 500, 0.05
DESIGNS = {"Beta(0.2, 20)": (0.2, 20.0), "Beta(1, 1)": (1.0, 1.0)}
#: What a peer tests by, and ours for the same question.
TESTS = {
    "skce_ul, exact": (LinearSKCE(pairing="rows"), "monte_carlo"),
    "skce_ul, moments": (LinearSKCE(pairing="rows"), "moments"),
    "skce_ul, normal (as the peers)": (LinearSKCE(pairing="rows"), "normal"),
    "hosmer_lemeshow, exact": ("hosmer_lemeshow", "monte_carlo"),
    "hosmer_lemeshow, chi2 (as the peers)": ("hosmer_lemeshow", "chi2"),
    "spiegelhalter, exact": ("spiegelhalter", "monte_carlo"),
    "spiegelhalter, normal (as the peers)": ("spiegelhalter", "normal"),
}


def pvalues(a: float, b: float, seed: np.random.SeedSequence) -> list[float]:
    """Test one data set; the last number says whether it has both labels."""
    rng = np.random.default_rng(seed)
    p = rng.beta(a, b, ROWS)
    y = (rng.random(ROWS) < p).astype(np.int64)
    found = [
        caltest.test(p, y, statistic, null=null, n_resamples=199, rng=seed).pvalue
        for statistic, null in TESTS.values()
    ]
    return [*found, float(0 < y.sum() < ROWS)]


def run(options: Options) -> None:
    """Test, and print the peers' findings beside."""
    if not options.wants("peers"):
        return
    count = 5 if options.quick else 2000
    rows: list[Row] = []
    with joblib.Parallel(n_jobs=options.jobs) as parallel:
        for number, (design, (a, b)) in enumerate(DESIGNS.items()):
            drawn = seeds(SEED, (number,), 0, count)
            found = np.array(spread(partial(pvalues, a, b), drawn, parallel))
            for kept, which in (("all", np.full(count, True)), ("both labels", found[:, -1] > 0)):
                for name, column in zip(TESTS, found[which].T, strict=False):
                    rows.append(_row(design, kept, name, column))
    write_csv(rows, options.results / "peers.csv")
    print(markdown(rows))
    path = RESULTS / "benchmarks_findings.csv"
    if not path.exists():
        print("no benchmarks_findings.csv: run python -m validation.benchmarks --peers")
        return
    with path.open(newline="") as file:
        print(markdown(list(csv.DictReader(file))))


def _row(design: str, kept: str, name: str, found: np.ndarray) -> Row:
    rejections = int(np.count_nonzero(found <= LEVEL))
    low, high = binomtest(rejections, max(len(found), 1)).proportion_ci(CONFIDENCE)
    return {
        "design": f"{ROWS} rows, p ~ {design}",
        "datasets_kept": kept,
        "test": name,
        "level": LEVEL,
        "datasets": len(found),
        "rejections": rejections,
        "rate": f"{rejections / max(len(found), 1):.4f}",
        "low": f"{low:.4f}",
        "high": f"{high:.4f}",
        "seed": SEED,
        "caltest": caltest.__version__,
    }
