"""Every public function that takes rows, with small data for all of its arguments that have rows."""

import json
from decimal import Decimal
from functools import cache
from inspect import signature
from types import SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats

import caltest
from caltest import ReliabilityDisplay
from caltest.data import sample
from caltest.plots import PITDisplay, SurvivalDisplay
from caltest.predictive import (
    Distribution,
    Ensemble,
    GaussianPredictions,
    Members,
    Normal,
    Quantiles,
    Survival,
)
from caltest.statistics import CKCE

N = 120
_RNG = np.random.default_rng(5)
_RATE, _GRID = _RNG.uniform(0.5, 2.0, N), np.array([0.5, 1.0, 2.0, 4.0])
_MEMBERS = _RNG.normal(size=(N, 9)) + 3.0 * _RNG.normal(size=(N, 1))
_TIME, _END = _RNG.exponential(1.0 / _RATE), _RNG.uniform(0.5, 3.0, N)


def _untied(chances):
    drawn = _RNG.multinomial(61, chances, 2 * N) + 1
    return drawn[[len({*row}) == 3 for row in drawn.tolist()]][:N] / 64


#: What belongs to rows, by the name of the argument; probabilities are whole numbers of 64ths.
DATA = {
    "probs": _untied([0.4, 0.4, 0.2]), "other": _untied([0.3, 0.3, 0.4]),
    "p": _RNG.choice(np.arange(1, 256), N, replace=False) / 256, "labels": _RNG.integers(0, 3, N),
    "events": _RNG.integers(0, 2, N), "weights": _RNG.permutation(np.arange(1, N + 1)) / 4,
    "clusters": _RNG.integers(1, 20, N), "groups": _RNG.permutation(N) % 2 + 1,
    "kinds": _RNG.permutation(N) % 3 + 1, "ids": _RNG.permutation(N) + 1,
    "mean": _MEMBERS.mean(axis=1), "spread": _RNG.uniform(0.5, 2.0, N), "means": _MEMBERS[:, :2],
    "spreads": _RNG.uniform(0.5, 2.0, (N, 2)), "values": np.sort(_MEMBERS, axis=1)[:, [1, 4, 7]],
    "members": _MEMBERS, "y": _MEMBERS.mean(axis=1) + _RNG.normal(size=N),
    "ys": _MEMBERS[:, :2] + _RNG.normal(size=(N, 2)), "survival": np.exp(-np.outer(_RATE, _GRID)),
    "hazard": 1.0 - np.exp(-np.outer(_RATE, np.diff(_GRID, prepend=0.0))),
    "risk": 1.0 - np.exp(-_RATE), "time": np.minimum(_TIME, _END),
    "event": (_TIME <= _END).astype(int), "early": _RNG.uniform(0.0, 0.5, N), "follow_up": _END,
}  # fmt: skip
_FEW: dict[str, Any] = {"n_resamples": 39, "rng": 0}
_LAW: dict[str, Any] = {"n_resamples": 99, "rng": 0, "min_rows": 5, "alpha": 0.2}
_AUDIT = {**_LAW, "lenses": "top_label", "statistics": "citl"}
_FITTED = caltest.estimation.Temperature(2.0).fit(DATA["probs"], DATA["labels"])
_MODEL = SimpleNamespace(
    classes_=np.arange(3), predict_proba=lambda X: np.asarray(getattr(X, "values", X), dtype=float)
)


def _sampled(probs, labels, weights, clusters):
    found = sample(probs, labels, weights=weights, clusters=clusters)
    return [found.labels, found.rows.probs, found.rows.weights, found.rows.clusters]


def _named(p, ids):
    """Outcomes come late, in another order, by their ids."""
    watched = caltest.Monitor()
    watched.update(p, [None] * N, ids=ids)
    return watched.update(None, DATA["events"], ids=DATA["ids"])


def _late(events, ids):
    watched = caltest.Monitor()
    watched.update(DATA["p"], [None] * N, ids=DATA["ids"])
    return watched.update(None, events, ids=ids)


def _drawn(*given, **options):
    found = caltest.test(*given, **options, **_FEW)
    return [found.statistic, found.null_distribution]


def _piloted(probs, weights, other):
    pilot = caltest.planning.pilot(probs, weights=weights, truth=other)
    return caltest.power(pilot, 30, "ecd", n_datasets=3, n_resamples=39, rng=0, alpha=0.1).to_dict()


#: By name, a call with what belongs to rows: a number, numbers, or a result.
CALLS = {
    "test": lambda probs, labels, weights, clusters: caltest.test(
        probs, labels, "skce_uq", weights=weights, clusters=clusters, **_FEW
    ).statistic,
    "test of one column": lambda p, events, weights: caltest.test(p, events, weights=weights, **_FEW),
    "ckce": lambda p, events, kinds: caltest.test(p, events, CKCE(groups=kinds), **_FEW),
    "estimate": lambda probs, labels, weights, clusters: caltest.estimate(
        probs, labels, weights=weights, clusters=clusters
    ),
    "sample": _sampled,
    "power of a pilot": _piloted,
    "audit": lambda probs, labels, weights, clusters, groups: caltest.audit(
        probs, labels, weights=weights, clusters=clusters, groups=groups, **_AUDIT
    ),
    "audit of two columns": lambda p, events, groups, clusters: caltest.audit(
        p, events, groups={"g": groups, "h": clusters}, **_AUDIT
    ),
    "assert_calibrated": lambda p, events, groups: caltest.assert_calibrated(
        p, events, groups={"g": groups}, fail_on="undecided", materiality=0.9, **_AUDIT
    ),
    "plan": lambda p, weights, clusters, groups: caltest.plan(
        p, weights=weights, clusters=clusters, groups=groups, min_rows=5, materiality=0.1
    ),
    "compare": lambda probs, other, labels, weights, clusters, groups: caltest.compare(
        {"a": probs, "b": other}, labels, "brier", weights=weights, clusters=clusters, groups=groups
    ),
    "compare laws": lambda mean, spread, members, y: caltest.compare(
        {"a": Normal(mean, spread), "b": Members(members)}, y, "crps"
    ),
    "bin_table": lambda p, events, weights: caltest.bin_table(p, events, weights=weights).to_dict(),
    "recalibration": lambda p, events, weights: caltest.recalibration(p, events, weights=weights),
    "miscalibration_bounds": lambda p, events: caltest.miscalibration_bounds(
        p, events, n_resamples=99, rng=0
    ),
    "certificate": lambda p, events: caltest.certificate(p, events),
    "estimate_squared_error": lambda p, events: caltest.estimate_squared_error(
        p, events, functions="binning", pvalue="none", n_folds=2, rng=0
    ).functions[0].estimate,
    "monitor": lambda p, events, groups, clusters: caltest.Monitor().update(
        p, events, groups=groups, clusters=clusters
    ),
    "names of rows": _named,
    "late outcomes": _late,
    "display": lambda p, events, weights: ReliabilityDisplay.from_predictions(
        p, events, weights=weights, **_FEW
    ).panels[0].observed.tolist(),
    "display of a model": lambda probs, labels, weights: ReliabilityDisplay.from_estimator(
        _MODEL, probs, labels, weights=weights, lens="top_label", **_FEW
    ).panels[0].observed.tolist(),
    "ranks": lambda mean, spread, y, weights: PITDisplay.from_predictions(
        Normal(mean, spread), y, weights=weights, **_FEW
    ).values.tolist(),
    "scorer": lambda probs, labels, weights: caltest.scorer("ece")(_MODEL, probs, labels, weights),
    "risks": lambda p, events: caltest.estimation.risk(_FITTED, p, events),
    # ------------------------------------------------------------ laws
    "normal": lambda mean, spread, y, weights, clusters: _drawn(
        Normal(mean, sd=spread), y, "crps", weights=weights, clusters=clusters
    ),
    "variances": lambda mean, spread, y: caltest.estimate(Normal(mean, variance=spread), y, "nees"),
    "normal vectors": lambda means, spreads, ys: caltest.estimate(Normal(means, spreads), ys, "nees"),
    "gaussian": lambda mean, spread, y: caltest.estimate(GaussianPredictions(mean, spread), y, "nees"),
    "scipy": lambda mean, spread, y: caltest.estimate(
        Distribution(stats.norm(mean, spread)), y, "pit_ad"
    ),
    "bare scipy": lambda mean, spread, y: caltest.estimate(stats.norm(mean, spread), y, "pit_ad"),
    "quantiles": lambda values, y: caltest.test(Quantiles([0.1, 0.5, 0.9], values), y, **_FEW),
    "members": lambda members, y, weights: caltest.estimate(
        Members(members), y, "crps", weights=weights
    ),
    "ensemble": lambda members, y: caltest.estimate(Ensemble(members), y, "pit_ad"),
    "audit of a law": lambda mean, spread, y, weights, clusters, groups: caltest.audit(
        Normal(mean, spread), y, weights=weights, clusters=clusters, groups={"g": groups},
        statistics="bias", **_LAW
    ),
    "audit of members": lambda members, y, groups: caltest.audit(
        Members(members), y, groups=groups, statistics="bias", **_LAW
    ),
    "monitor of a law": lambda mean, spread, y, groups: caltest.Monitor().update(
        Normal(mean, spread), y, groups=groups
    ),
    "survival": lambda survival, time, event, weights: caltest.estimate(
        Survival(survival, _GRID), (time, event), "events", weights=weights
    ),
    "hazard": lambda hazard, time, event: caltest.estimate(
        Survival(hazard=hazard, times=_GRID), (time, event), "event_slope"
    ),
    "known follow-up": lambda survival, follow_up, early: _drawn(
        Survival(survival, _GRID, follow_up=follow_up), (early, np.ones(N)), "events"
    ),
    "risk": lambda risk, time, event, groups: caltest.audit(
        Survival(risk=risk, times=1.0), (time, event), groups=groups, **_LAW
    ),
    "times in a picture": lambda survival, time, event: SurvivalDisplay.from_predictions(
        Survival(survival, _GRID), (time, event), kind="curves"
    ).values,
    "sbc": lambda mean, spread, groups: caltest.sbc(
        {"mu": mean, "tau": spread}, {"mu": _MEMBERS.T, "tau": _MEMBERS.T}, groups=groups, **_LAW
    ),
}  # fmt: skip


#: Calls whose numbers do not depend on the order of columns, as draws do.
ANY_ORDER = (
    "test", "estimate", "compare", "normal vectors", "quantiles", "survival", "hazard", "members",
    "known follow-up", "times in a picture", "ensemble", "compare laws",
)  # fmt: skip
#: Names of columns that are tables, of which some say what the columns are.
COLUMNS = {
    "probs": ["0", "1", "2"], "other": ["0", "1", "2"], "values": ["0.1", "0.5", "0.9"],
    "survival": _GRID.tolist(), "hazard": _GRID.tolist(), "members": list("abcdefghi"),
    "means": ["u", "v"], "spreads": ["u", "v"], "ys": ["u", "v"],
}  # fmt: skip
#: Names of dimensions of xarray.
DIMS = {"members": "member", "values": "quantile", "survival": "time", "hazard": "time"}
_ROWS = np.arange(N)
_SHUFFLED = np.random.default_rng(7).permutation(N)
INDEXES = {
    "range": pd.RangeIndex(N),
    "text": pd.Index([f"r{k:03}" for k in _SHUFFLED]),
    "dates": pd.date_range("2024-01-01", periods=N),
    "numbers": pd.Index(_SHUFFLED + 1000),
    "places": pd.Index(_SHUFFLED),
    "twice": pd.Index([f"r{k // 2}" for k in _SHUFFLED]),
    "two levels": pd.MultiIndex.from_arrays([_SHUFFLED // 7, _SHUFFLED % 7]),
}


def _pandas(part, values, index, **backend):
    if np.ndim(values) == 1:
        made = pd.Series(values, index, name=part)
    else:
        made = pd.DataFrame(values, index, COLUMNS[part])
    return made.convert_dtypes(**backend) if backend else made


def _xarray(part, values, index):
    dims = ("row", DIMS.get(part, "column"))[: np.ndim(values)]
    coords = {} if index is None else {"row": index}
    return pytest.importorskip("xarray").DataArray(values, dims=dims, coords=coords, name=part)


def _tuples(values):
    return tuple(map(_tuples, values)) if isinstance(values, list) else values


def _framed(part, values, table, column):
    if np.ndim(values) == 1:
        return column(values.tolist())
    return table(dict(zip(map(str, COLUMNS[part]), values.T.tolist(), strict=True)))


#: Of the name of an argument, an array and an index: the same in a container.
CONTAINERS = {
    "list": lambda part, values, index: values.tolist(),
    "tuple": lambda part, values, index: _tuples(values.tolist()),
    "numpy": lambda part, values, index: np.asfortranarray(values),
    "objects": lambda part, values, index: values.astype(object) if part in DISCRETE else values,
    "pandas": _pandas,
    "nullable": lambda *of: _pandas(*of, dtype_backend="numpy_nullable"),
    "arrow": lambda *of: _pandas(*of, dtype_backend="pyarrow"),
    "categories": lambda part, values, index: _pandas(part, values, index).astype("category")
    if part in DISCRETE else _pandas(part, values, index),
    "polars": lambda part, values, index: _framed(part, values, pl.DataFrame, pl.Series),
    "pyarrow": lambda part, values, index: _framed(part, values, pa.table, pa.array),
    "chunks": lambda part, values, index: _framed(
        part, values, pa.RecordBatch.from_pydict,
        lambda v: pa.chunked_array([pa.array(v)[:9], pa.array(v)[9:]]),
    ),
    "xarray": _xarray,
    "torch": lambda part, values, index: values.tolist()
    if values.dtype == object else pytest.importorskip("torch").tensor(values),
}  # fmt: skip
INDEXED = ("pandas", "nullable", "arrow", "categories", "xarray")
TYPED = ("polars", "pyarrow", "chunks")  # every column of one type
#: What names things, which may be written in several ways.
DISCRETE = ("clusters", "groups", "ids")
WRITTEN = {
    "int": int, "float": np.float32, "text": str, "text of floats": lambda k: f"{k}.0",
    "decimal": Decimal,
    "mixed": lambda k: (k, float(k), f"{k}", f"{k}.0", Decimal(k), f" {k} ", np.float32(k))[k % 7],
}  # fmt: skip


def written(part, kind):
    """The data of an argument, whose names are written in one of six ways."""
    if part not in DISCRETE:
        return DATA[part]
    cells = [WRITTEN[kind](k) for k in DATA[part].tolist()]
    return np.array(cells, dtype=None if kind in ("int", "float") else object)


def parts_of(name):
    """Return the data of all arguments of a call, by name."""
    return {each: DATA[each] for each in signature(CALLS[name]).parameters}


def numbers(name, parts):
    """Call it, and return all numbers of its result."""
    try:
        return json.dumps(_plain(CALLS[name](**parts)))
    finally:
        plt.close("all")


@cache
def expected(name):
    """What plain arrays give."""
    return numbers(name, parts_of(name))


def _plain(found):
    """What a result holds, without words, but for last digits: these depend on the order of sums."""
    found = found.to_dict() if hasattr(found, "to_dict") else found
    found = found.tolist() if isinstance(found, np.ndarray | np.generic) else found
    if isinstance(found, dict | list | tuple):
        each = found.values() if isinstance(found, dict) else found
        return [_plain(value) for value in each if not isinstance(value, str)]
    return round(found, 9) if isinstance(found, float) else found
