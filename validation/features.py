"""Audits by features: level, innocent slices, power, sizes of slices, real data, other packages.

``python -m validation features``; a part of it: ``--only features_level``, ``--only features_power``, …

*Level* (``features_level.csv``): calibrated designs, easy and hostile. In how many data sets the whole
audit, ``feature_scan`` and ``feature_ridge`` reject at 5%.

*Planted* (``features_planted.csv``): models that are wrong in a slice, and a calibrated one. In how
many data sets a slice is named; one is named all of whose predictions are right (``innocent``); the
interval of a named slice misses the true mean error (``missed``), or that of all rows does
(``missed_whole``); ``at_least_by_features`` is above 0, and above the true mean absolute error of
P(Y | X) of its half of the rows (``above``).

*Power* (``features_power.csv``): in how many data sets an audit of these two checks, which answers by
the smaller p-value of both ranked on the same draws, and each alone reject at 5%: 800 rows, 8 features
and 20.

*Real* (``features_real.csv``): public tables that come with installed packages, models fitted on a
third. What is shown on one half of the others, and how much of it is found again on the other half.

*Others* (``features_others.csv``, where they are installed): MCGrad's p-value and AIF360's bias scan on
the data sets of the power cases.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import joblib
import numpy as np

import caltest
from caltest.clusters import folds_of
from validation import _feature_peers, _feature_real
from validation._cells import Options, Part, Row, Table, counted, seeds, spread
from validation._feature_designs import CALIBRATED, PLANTED, POWER, Data, Design, covered
from validation.survival import have

SEED = 20_261_129
ALPHA = 0.05
RESAMPLES = 199
BOTH = ("feature_scan", "feature_ridge")
DIMENSIONS = (8, 20)
ROWS = 800  # of the power cases


def audited(data: Data, draws: np.random.SeedSequence, **options: Any) -> caltest.Audit:
    """Audit a data set by its features."""
    given = {"n_resamples": RESAMPLES, "alpha": ALPHA, "rng": draws, **data.options, **data.of_audits}
    return caltest.audit(data.predicted, data.outcomes, features=data.features, **{**given, **options})


# ------------------------------------------------------------------ level


def alone(audit: caltest.Audit) -> dict[str, float]:
    """Return p-values of statistics of features; of several lenses, by the first name."""
    checks = sorted(audit.checks, key=lambda check: check.view.lens, reverse=True)
    return {check.statistic: check.pvalue for check in checks if check.statistic in BOTH}


def rejected(design: Design, seed: np.random.SeedSequence) -> dict[str, bool]:
    """Say what rejects a calibrated data set at 5%, and whether a slice is named."""
    drawn, draws = seed.spawn(2)
    audit = audited(design.draw(np.random.default_rng(drawn)), draws)
    own = alone(audit)
    found = {name: own.get(name, 1.0) <= ALPHA for name in BOTH}
    return {"audit": audit.pvalue <= ALPHA, **found, "named": bool(audit.slices)}


# ------------------------------------------------------------------ innocent slices, and sizes


def planted(design: Design, seed: np.random.SeedSequence) -> dict[str, bool]:
    """Say what an audit names, and which of it is false."""
    drawn, draws = seed.spawn(2)
    data = design.draw(np.random.default_rng(drawn))
    audit = audited(data, draws, min_rows=30)
    rows, clusters = len(data.outcomes), data.options.get("clusters")
    error, weights = data.predicted - data.true, np.asarray(data.options.get("weights", np.ones(rows)))
    found = dict.fromkeys(("named", "shown_wrong", "innocent", "missed"), False)
    for each in audit.slices:
        inside = covered(each.group.conditions, data.features)
        if inside.sum() != each.rows:
            raise ValueError(f"{each.rule} has {inside.sum()} rows, and not {each.rows}")
        truth = np.average(error[inside], weights=weights[inside])
        found["missed"] |= not each.low <= truth <= each.high
        if each.adjusted_pvalue <= ALPHA:
            found["named"] = True
            found["innocent"] |= not error[inside].any()
            found["shown_wrong"] |= bool(each.shown and np.mean(error[inside] != 0.0) > 0.5)
    whole = next(view for view in audit.views if view.group is None and view.low is not None)
    found["missed_whole"] = not whole.low <= np.average(error, weights=weights) <= whole.high
    half = folds_of(rows, clusters, 2, audit.seed) == 1  # the rows that the limit is about
    least = audit.at_least_by_features or 0.0
    found["at_least"] = least > 0.0
    found["above"] = least > np.average(np.abs(error[half]), weights=weights[half])
    return {name: bool(value) for name, value in found.items()}


# ------------------------------------------------------------------ power


def powers(case: str, dimension: int, seed: np.random.SeedSequence) -> dict[str, bool]:
    """Say what rejects: both together, each alone by the same draws."""
    drawn, draws = seed.spawn(2)
    data = POWER[case](ROWS, dimension, np.random.default_rng(drawn))
    audit = audited(data, draws, statistics=list(BOTH), min_rows=30)
    own = alone(audit)
    return {
        "answer": audit.pvalue <= ALPHA,
        **{name: own[name] <= ALPHA for name in BOTH},
        "named": bool(audit.slices),
    }


# ------------------------------------------------------------------ run


def parts(designs: Iterable[Design], first: int, one: Any) -> Iterator[Part]:
    """Yield cells of designs."""
    for number, design in enumerate(designs):
        yield first + number, {"design": design.name}, partial(one, design)


def power_parts() -> Iterator[Part]:
    """Yield the power cases."""
    for number, case in enumerate(POWER):
        for place, dimension in enumerate(DIMENSIONS):
            what: Row = {"case": case, "rows": ROWS, "features": dimension}
            yield 2001 + 10 * number + place, what, partial(powers, case, dimension)


def others(options: Options) -> None:
    """Run other packages on the data sets of the power cases, calibrated ones first."""
    table = Table(options.results / "features_others.csv", ("case", "features", "seed"))
    with joblib.Parallel(n_jobs=options.jobs) as parallel:
        for dimension in DIMENSIONS[: 1 if options.quick else None]:
            limits: dict[str, float] = {}
            for number, case in enumerate(POWER):
                what = f"features_others: {case}, {dimension} features"
                wanted = options.datasets or (2 if options.quick else 200)
                if not options.wants(what) or options.over:
                    continue
                place = DIMENSIONS.index(dimension)
                drawn = seeds(SEED, (2001 + 10 * number + place,), 0, wanted)
                one = partial(_feature_peers.tested, POWER[case], ROWS, dimension)
                found = spread(one, drawn, parallel)
                table.put([
                    {"case": case, "rows": ROWS, "features": dimension, "seed": SEED,
                     "caltest": caltest.__version__, **_feature_peers.summary(found, limits)}
                ])  # fmt: skip
                print(f"{what}: {wanted}, {options.seconds:.0f} s", flush=True)


def run(options: Options) -> None:
    """Count rejections, what is named, and intervals; audit real tables; run what is installed."""
    counted("features_level", parts(CALIBRATED, 1, rejected), options, SEED, 600)
    counted("features_planted", parts(PLANTED, 1001, planted), options, SEED, 600)
    counted("features_power", power_parts(), options, SEED, 400, 50)
    _feature_real.run(options, SEED)
    if have("mcgrad", "aif360"):
        others(options)
