"""Verdicts of views that are easily forgotten: rare classes, times with levels and gaps, clusters.

``python -m validation.vouched --repetitions 400``: forty designs, each of right predictions or of
predictions with an error that no check sees. Of the data sets of each, how many audits reject, how many
say "within" (wrongly, where some mean is beyond the limit), and in how many the interval of the mean of
all rows misses its true error. At most 5% where an audit is exact; "about" as much where it says so.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import Any

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

import caltest
from validation import _vouched_classes, _vouched_clusters, _vouched_times
from validation._study import command_line, markdown, write_csv
from validation.audit import rate

ALPHA = 0.05
_DRAWS = 99
DESIGNS: dict[str, dict[str, Callable[[np.random.Generator], Any]]] = {
    "classes": _vouched_classes.designs(),
    "times": _vouched_times.designs(),
    "clusters": _vouched_clusters.designs(),
}


def _audited(of: str, name: str, seeds: Sequence[np.random.SeedSequence]) -> list[dict[str, Any]]:
    """Return what audits of some data sets say, beside the truth."""
    found = []
    for k, seed in enumerate(seeds):
        predicted, outcomes, options, truth = DESIGNS[of][name](np.random.default_rng(seed))
        options = {"n_resamples": _DRAWS, "alpha": ALPHA, "rng": k, **options}
        if of != "times":
            options.setdefault("statistics", "citl")
        with threadpool_limits(1):
            audit = caltest.audit(predicted, outcomes, **options)
        whole = next(view for view in audit.views if view.group is None and view.low is not None)
        error = truth["mean_error"]
        if np.ndim(error):
            error = error[whole.class_index]
        wholes = [each for each in (*audit.views, *audit.rests) if each.low is not None]
        found.append(
            {
                "calibrated": bool(truth["calibrated"]),
                "false": bool(truth.get("within_is_false", False)),
                "limited": bool(audit.limit),
                "exact": all(each.exact for each in wholes) and audit.clusters is None,
                "rejected": audit.rejected,
                "within": audit.verdict == "within",
                "missed": error is not None and not whole.low <= error <= whole.high,
            }
        )
    return found


def run(options: argparse.Namespace) -> Iterable[dict[str, Any]]:
    """Yield a row a design."""
    every = [(of, name) for of, those in DESIGNS.items() for name in list(those)[: options.designs]]
    for number, (of, name) in enumerate(every):
        start = perf_counter()
        seeds = np.random.SeedSequence([options.seed, number]).spawn(options.repetitions)
        jobs = max(options.jobs, 1)
        tasks = (joblib.delayed(_audited)(of, name, seeds[k::jobs]) for k in range(jobs))
        found = [each for part in joblib.Parallel(n_jobs=options.jobs)(tasks) for each in part]
        first, n = found[0], options.repetitions
        counts = {key: sum(each[key] for each in found) for key in ("rejected", "within", "missed")}
        print(f"{of}, {name}: {perf_counter() - start:.0f} s", flush=True)
        yield {
            "of": of,
            "design": name,
            "model": "right" if first["calibrated"] else "wrong",
            "guarantee": "exact" if all(each["exact"] for each in found) else "about",
            "repetitions": n,
            **rate(counts["rejected"], n, "rejected"),
            "limit": first["limited"],
            "within_is_false": first["false"],
            **rate(counts["within"], n, "within"),
            **rate(counts["missed"], n, "missed"),
        }


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options."""
    given = command_line(__doc__, seed=20_261_127)
    given.add_argument("--repetitions", type=int, default=400)
    given.add_argument("--designs", type=int, default=20, help="the first so many of each kind")
    return given.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study; its rows are written as they come."""
    options = parsed(arguments)
    rows: list[dict[str, Any]] = []
    for row in run(options):
        rows.append(row)
        write_csv(rows, options.results / "vouched.csv")
    print(markdown(rows))


if __name__ == "__main__":
    main()
