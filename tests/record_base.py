"""What the calls of the record share: data of their own, what is kept of a result, and their names.

The data come from NumPy's generators alone. What is kept of a result is said once, by the functions
`of_...`, so that an attribute that is renamed is renamed in one place. Sentences are not kept.
"""

import inspect
import math
from collections.abc import Callable
from functools import cache, partial
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd

CALLS: dict[str, Callable[[], Any]] = {}
WORKERS: dict[str, int | None] = {"n_jobs": None}
SEED, DRAWS = 7, 99


# ------------------------------------------------------------------ data


def dirichlet(n, m, seed, alpha=1.0):
    return np.random.default_rng(seed).dirichlet(np.full(m, alpha), n)


def tempered(probs, power):
    raised = probs**power
    return raised / raised.sum(axis=1, keepdims=True)


def drawn(probs, seed):
    """One label a row, never one of probability 0."""
    u = np.random.default_rng(seed).random((len(probs), 1)) * probs.sum(axis=1, keepdims=True)
    return (u >= np.cumsum(probs, axis=1)[:, :-1]).sum(axis=1)


def too_sure(truth, power, seed):
    return tempered(truth, power), drawn(truth, seed)


def with_zeros(n, m, seed):
    """Predictions of which many are 0, and some are certain; labels are possible."""
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.ones(m), n)
    probs[rng.random((n, m)) < 0.3] = 0.0
    probs[probs.sum(axis=1) == 0.0, 0] = 1.0
    probs[:3] = np.eye(m)[[0, 1, 0]]
    probs /= probs.sum(axis=1, keepdims=True)
    return probs, drawn(tempered(probs, 0.7), seed + 1)


def binary(n, seed, power=1.4):
    probs, labels = too_sure(dirichlet(n, 2, seed, 2.0), power, seed + 1)
    return probs[:, 1], labels


def named(n, seed):
    probs, labels = too_sure(dirichlet(n, 3, seed), 1.3, seed + 1)
    animals = ["cat", "dog", "owl"]
    return pd.DataFrame(probs, columns=animals), np.array(animals)[labels]


def tenths(n, seed):
    """Rounded predictions: equal rows, and the same values again and again."""
    probs = (np.random.default_rng(seed).multinomial(7, [0.5, 0.3, 0.2], n) + 1) / 10
    return probs, drawn(tempered(probs, 0.8), seed + 1)


def impossible(n, m, seed):
    probs, labels = with_zeros(n, m, seed)
    row = int(np.flatnonzero((probs == 0.0).any(axis=1))[0])
    labels[row] = int(probs[row].argmin())
    return probs, labels


DESIGNS = {
    "binary": binary(80, 1), "m3": too_sure(dirichlet(120, 3, 2), 1.3, 3),
    "m10": too_sure(dirichlet(60, 10, 4, 0.5), 1.2, 5), "tied": tenths(90, 6),
    "zeros": with_zeros(80, 4, 8), "named": named(100, 9), "impossible": impossible(80, 4, 8),
    "sure": too_sure(dirichlet(400, 3, 41), 2.0, 42),
}  # fmt: skip
BINARY, M3, TIED, ZEROS = (DESIGNS[name] for name in ("binary", "m3", "tied", "zeros"))


@cache
def in_groups(n, m, seed):
    """Predictions that are too sure in one group of four; two columns of groups."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.ones(m), n)
    region = rng.choice(["east", "north", "south", "west"], n)
    age = rng.choice(["old", "young"], n)
    probs = np.where((region == "south")[:, None], tempered(truth, 4.0), truth)
    return probs, drawn(truth, seed + 1), pd.DataFrame({"region": region, "age": age})


# ------------------------------------------------------------------ what is kept of a result


def of_array(array):
    """A short array itself, of a long one a few numbers."""
    array = np.asarray(array)
    return array.tolist() if array.size <= 20 else [list(array.shape), spread(array.ravel())]


def spread(values):
    """Mean, minimum and maximum, and five of the values."""
    values = [float(value) for value in values]
    n = len(values)
    mean = math.fsum(values) / n if all(map(math.isfinite, values)) else None
    return [mean, min(values), max(values), *(values[k] for k in (0, 1, n // 3, n // 2, n - 1))]


def of_options(parameters):
    """The numbers among a statistic's options; of a trace what is kept, not what is missing."""
    found = {}
    for name, value in parameters.items():
        if isinstance(value, dict):
            found[name] = of_options(value)
        elif isinstance(value, bool | int | float | np.number | list | tuple):
            found[name] = 1.0 - value if name == "trace_error" else value
    return found


def of_result(result):
    """The value, and what it is compared with, are one list: they have one scale."""
    drawn = () if result.null_distribution is None else spread(result.null_distribution)
    found = {
        "statistic": [result.statistic, *drawn],
        "pvalue": result.pvalue,
        "asked": [result.name, result.null, result.guarantee, result.alternative, result.lens],
        "size": [result.n_samples, result.n_classes],
        "options": of_options(result.parameters),
    }
    if result.n_resamples is not None:
        found["drawn"] = [result.n_resamples, result.exceedances]
        found["interval"] = result.pvalue_interval
    if result.parts:
        found["parts"] = [
            {"statistic": part.value, "pvalue": part.pvalue, "adjusted": part.adjusted}
            for part in result.parts
        ]
    return found


def group_of(view):
    return None if view.group is None else view.group.label


def of_checks(found):
    drawn = () if found.null_distribution is None else spread(found.null_distribution)
    return {
        "pvalue": found.pvalue,
        "statistic": [found.statistic, *drawn],
        "rejected": found.rejected,
        "asked": [found.correction, found.confidence, found.tolerance, found.n_resamples],
        "size": [found.n_samples, found.n_classes, len(found.views), found.impossible],
        "skipped": [each.rows for each in found.skipped],
        "checks": [
            {
                "of": [check.view.lens, group_of(check.view), check.statistic, check.found],
                "value": [check.value, *(check.expected or ())],
                "p": [check.pvalue, *check.pvalue_interval, check.adjusted],
            }
            for check in found.checks
        ],
    }


def of_views(found):
    line = found.recalibration
    worst = None if found.worst is None else [found.worst.lens, group_of(found.worst)]
    return {
        "verdict": [found.verdict, worst, found.at_most],
        "views": [
            [
                v.lens, group_of(v), v.rows, v.predicted, v.observed, v.low, v.high, v.direction,
                v.shape, v.at_least_over, v.at_least_under,
            ]
            for v in found.views
        ],
        "recalibration": None if line is None else of_line(line),
    }  # fmt: skip


def of_bands(found):
    return [
        {
            "of": [v.lens, group_of(v)], "says": of_array(v.reliability.predicted),
            "share": of_array(v.reliability.observed), "rows": of_array(v.reliability.rows),
            "low": of_array(v.reliability.low), "high": of_array(v.reliability.high),
        }
        for v in found.views
        if v.reliability is not None
    ]  # fmt: skip


def of_line(fit):
    return {
        "line": [fit.intercept, fit.slope, fit.in_the_large],
        "errors": [fit.intercept_se, fit.slope_se, fit.in_the_large_se],
        "both": of_test(fit.test_both),
        "in_the_large": of_test(fit.test_in_the_large),
        "slope": of_test(fit.test_slope),
        "separated": fit.separated,
    }


def of_test(test):
    return {"statistic": test.statistic, "pvalue": test.pvalue}


def of_amounts(found):
    return {
        "asked": [found.lens, found.confidence, found.n_resamples],
        "level": found.level,
        "sides": [
            [view.lens, side.side, side.bound, side.found, side.pvalue, len(side.places)]
            for view in found.views
            for side in view.sides
        ],
    }


def of_places(found):
    return [
        [p.low, p.high, p.rows, p.predicted, p.observed, p.somewhere_by, p.pvalue, p.named]
        for view in found.views
        for side in view.sides
        for p in islice(side.places, 8)
    ]


def of_certificate(found):
    arrays = ("starts", "ends", "counts", "predicted", "estimates", "lower", "upper", "distances")
    return {
        "distance": [found.distance, found.over, found.under, found.proved],
        "asked": [found.lens, found.confidence],
        "level": found.level,
        "miscalibrated": [list(each) for each in found.miscalibrated],
        **{name: of_array(getattr(found, name)) for name in arrays},
    }


def of_comparison(found):
    return {
        "nearest": found.nearest,
        "asked": [found.statistic, found.lens, found.probability],
        "size": [found.n_samples, found.n_classes],
        "values": of_array(found.values),
        "errors": [
            [e.predicted, e.observed, e.low, e.high, *e.absolute, e.log_loss, e.brier]
            for e in found.errors
        ],
        "gaps": [[*e.absolute, *e.mean, *e.log_loss, *e.brier] for e in found.gaps],
    }


def of_power(found):
    return {
        "points": [
            [p.n, p.n_datasets, p.rejections, p.power, *p.interval, p.false_rejections, p.size]
            for p in found.points
        ],
        "error": found.error,
        "asked": [found.statistic, found.null, found.alternative, found.lens, found.n_resamples],
    }


def of_sample_size(found):
    return of_power(found) | {"n": found.n, "interval": found.interval, "reached": found.reached}


def standard_error(values):
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def of_squared_error(found):
    """Of the best options only: the smallest regularizations are as good as singular."""
    return {
        "functions": [
            {
                "name": each.name,
                "estimate": [
                    each.estimate,
                    standard_error(each.estimates[each.best]),
                    each.standard_error,
                ],
                "risk": [each.risk, each.risk_error, float(np.sqrt(each.risks[each.best]).mean())],
                "value": each.value,
                "risks": of_array(each.risks[each.best]),
                "estimates": of_array(each.estimates[each.best]),
            }
            for each in found.functions
        ],
        "zero_risks": of_array(found.zero_risks),
        "size": [found.n_tuning, found.n_test, found.n_folds],
        "test": None if found.test is None else of_result(found.test),
    }


def of_sample(sample):
    """Predictions and labels, as a check sum that no change of a row leaves."""
    probs, labels = sample.rows.probs, sample.labels
    return of_rows(probs, labels) | {"classes": sample.rows.classes}


def of_rows(probs, labels):
    probs, labels = np.asarray(probs), np.asarray(labels)
    places = np.arange(1.0, len(labels) + 1.0)
    return {
        "shape": list(probs.shape),
        "columns": (places @ probs).tolist(),
        "labels": int(places @ labels),
    }


# ------------------------------------------------------------------ calls


def call(name, function, *args, keep=of_result, **options):
    """Add a call of a public function with the seed; ``keep`` says what is kept of its result."""
    if name in CALLS:
        raise ValueError(f"two calls are named {name}")
    CALLS[name] = partial(_called, function, args, options, keep)


def _called(function, args, options, keep):
    known = inspect.signature(function).parameters
    always = {"rng": SEED, "n_jobs": WORKERS["n_jobs"]} | options
    given = {key: value for key, value in always.items() if key in known or key in options}
    return keep(function(*(present(each) for each in args), **given))


def present(argument):
    """Statistics are made when asked for, so that one that cannot be made spoils one call only."""
    return argument() if isinstance(argument, partial) else argument
