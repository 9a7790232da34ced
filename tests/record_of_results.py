"""The record's calls that answer more than one test: audits, bounds, comparisons, plans, estimates."""

from functools import cache, partial
from typing import Any

import numpy as np
from record_base import (
    BINARY,
    DESIGNS,
    DRAWS,
    M3,
    SEED,
    TIED,
    ZEROS,
    binary,
    call,
    dirichlet,
    drawn,
    in_groups,
    named,
    of_amounts,
    of_array,
    of_bands,
    of_certificate,
    of_checks,
    of_comparison,
    of_line,
    of_places,
    of_power,
    of_result,
    of_sample_size,
    of_squared_error,
    of_views,
    tempered,
)
from record_of_test import STATISTICS, sure_and_wrong

import caltest
from caltest import binning, kernels, simulation, statistics
from caltest.planning import pilot

# ------------------------------------------------------------------ values, tables, fits


def all_values(design, **options):
    names = [name for name in STATISTICS if name != "skce_ul"]
    return {name: caltest.estimate(*DESIGNS[design], name, **options) for name in names}


for _design in ("binary", "m3", "tied", "named"):
    call(f"estimate/{_design}", all_values, _design, keep=dict)
    call(f"estimate/skce_ul/{_design}", caltest.estimate, *DESIGNS[_design], "skce_ul", keep=float)
call("estimate/m3/class:1", all_values, "m3", lens="class:1", keep=dict)


def of_table(table):
    return {str(name): of_array(table[name].to_numpy()) for name in table.columns}


for _design in ("binary", "m3", "tied"):
    call(f"bin_table/{_design}", caltest.bin_table, *DESIGNS[_design], bins=6, keep=of_table)
    call(f"recalibration/{_design}", caltest.recalibration, *DESIGNS[_design], keep=of_line)
call("bin_table/zeros/class:1", caltest.bin_table, *ZEROS, lens="class:1", clip=0.01, keep=of_table)
call("recalibration/zeros/class:1", caltest.recalibration, *ZEROS, lens="class:1", keep=of_line)
call(
    "recalibration/separated", caltest.recalibration, [0.1, 0.2, 0.8, 0.95], [0, 0, 1, 1], keep=of_line
)


def of_display(probs, labels, *, rng, n_jobs, **options):
    """The numbers of a reliability diagram; the picture is thrown away."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    asked = {"rng": rng, "n_jobs": n_jobs} | options
    display = caltest.ReliabilityDisplay.from_predictions(probs, labels, **asked)
    plt.close(display.figure_)
    return [
        {
            "predicted": of_array(panel.predicted),
            "observed": of_array(panel.observed),
            "counts": None if panel.counts is None else of_array(panel.counts),
            "pointwise": [of_array(panel.pointwise.low), of_array(panel.pointwise.high)],
            "simultaneous": [of_array(panel.simultaneous.low), of_array(panel.simultaneous.high)],
            "test": of_result(panel.result),
        }
        for panel in display.panels
    ]


_WIDE = {"binning": binning.EqualWidth(15)}
_DIAGRAMS = {
    "binary": (BINARY, _WIDE),
    "m3": (M3, _WIDE),
    "tied": (TIED, {"lens": "class:1", "confidence": 0.9, **_WIDE}),
    "mass": (M3, {"binning": binning.EqualMass(6), "lens": "class:2"}),
    "classwise": (M3, {"lens": "classwise", "classes": [0, 2], **_WIDE}),
    "corp": (BINARY, {"curve": "corp", "n_resamples": 199}),
    "corp_tied": (TIED, {"curve": "corp", "n_resamples": 199}),
}
for _name, (_data, _options) in _DIAGRAMS.items():
    call(f"reliability/{_name}", of_display, *_data, keep=list, **({"n_resamples": DRAWS} | _options))

# ------------------------------------------------------------------ audits

_SURE = DESIGNS["sure"]
_GROUPED = in_groups(400, 3, 31)
_TEN = in_groups(300, 10, 33)
_TWO = in_groups(300, 2, 35)
_NAMED_ROWS = named(200, 9)
_REGION = _GROUPED[2]["region"]
_TOP = {"groups": _REGION, "lenses": "top_label"}
_OBJECTS = [statistics.UnbiasedSKCE(kernels.Gaussian(0.3)), sure_and_wrong]
_AUDITS: dict[str, tuple[tuple[Any, Any], dict[str, Any]]] = {
    "default": (_GROUPED[:2], {}),
    "m10": (_TEN[:2], {}),
    "binary": ((_TWO[0][:, 1], _TWO[1]), {"groups": _TWO[2]["region"]}),
    "named": (_NAMED_ROWS, {"lenses": ["class:dog", "sorted", "top:2"]}),
    "impossible": (DESIGNS["impossible"], {"lenses": ["canonical", "top_label"]}),
    "zeros": (ZEROS, {}),
    "group": (_GROUPED[:2], {"groups": _REGION}),
    "two_columns": (_GROUPED[:2], {"groups": _GROUPED[2]}),
    "dictionary": (_GROUPED[:2], {"groups": {"area": _REGION.to_numpy()}, "lenses": "top_label"}),
    "sure": (_SURE, {"groups": np.arange(400) % 2, "n_resamples": 199}),
    "sure_tolerance": (_SURE, {"tolerance": 0.05, "n_resamples": 599}),
    "min_rows": (_GROUPED[:2], {"groups": _REGION, "min_rows": 100, "lenses": "canonical"}),
    "statistics": (_GROUPED[:2], _TOP | {"statistics": ["ks", "brier", "kuiper", "citl"]}),
    "binned": (_GROUPED[:2], {"lenses": "classwise", "statistics": ["ece", "hosmer_lemeshow", "scan"]}),
    "objects": (_GROUPED[:2], {"lenses": "canonical", "groups": _REGION, "statistics": _OBJECTS}),
    "ckce": (M3, {"lenses": ["canonical", "class:0"], "statistics": ["ckce", "jkce"]}),
    "omnibus": (M3, {"lenses": "canonical", "statistics": ["omnibus", "cox"]}),
    "tolerance": (_GROUPED[:2], _TOP | {"tolerance": 0.05, "n_resamples": 299}),
    "tolerance_zero": (M3, {"lenses": "top_label", "tolerance": 0.0, "n_resamples": 199}),
    "tolerance_few_draws": (M3, {"lenses": "classwise", "tolerance": 0.05}),
    "alpha": (_GROUPED[:2], _TOP | {"alpha": 0.2}),
}
for _correction in ("westfall_young", "holm", "bonferroni", "fdr_bh", "fdr_by"):
    _asked = _TOP | {"correction": _correction, "n_resamples": 1999}
    _AUDITS[f"correction_{_correction}"] = (_GROUPED[:2], _asked)


@cache
def audited(name, n_jobs):
    data, options = _AUDITS[name]
    return caltest.audit(*data, **({"n_resamples": DRAWS, "rng": SEED, "n_jobs": n_jobs} | options))


for _name in _AUDITS:
    call(f"audit/checks/{_name}", audited, _name, keep=of_checks)
_VIEWED = "default m10 binary impossible zeros two_columns tolerance named sure sure_tolerance"
for _name in _VIEWED.split():
    call(f"audit/views/{_name}", audited, _name, keep=of_views)
for _name in ("default", "binary", "zeros", "group", "tolerance", "named", "sure"):
    call(f"audit/bands/{_name}", audited, _name, keep=of_bands)


def gated(*data, **options):
    try:
        return of_checks(caltest.assert_calibrated(*data, n_resamples=DRAWS, **options))
    except AssertionError:
        return {"failed": True}


call("gate/passes", gated, *M3, lenses="top_label", tolerance=0.2, keep=dict)
call("gate/fails", gated, *_GROUPED[:2], groups=_REGION, lenses="canonical", keep=dict)
call("gate/default", gated, *M3, lenses="top_label", alpha=0.1, keep=dict)

# ------------------------------------------------------------------ bounds, certificates, places

_SURE_TWO = binary(400, 43, 2.0)
_BOUNDS: dict[str, tuple[tuple[Any, Any], dict[str, Any]]] = {
    "binary": (_SURE_TWO, {}), "m3": (_SURE, {}),
    "class:1": (_SURE, {"lens": "class:1", "confidence": 0.9}),
    "classwise": (_SURE, {"lens": "classwise", "confidence": 0.8}),
    "tied": (TIED, {"n_resamples": 199}), "zeros": (ZEROS, {"lens": "class:0"}),
    "small": (BINARY, {}), "few_draws": (BINARY, {"n_resamples": 9}),
}  # fmt: skip


@cache
def bounded(name, n_jobs):
    data, options = _BOUNDS[name]
    return caltest.miscalibration_bounds(*data, **({"rng": SEED, "n_jobs": n_jobs} | options))


for _name in _BOUNDS:
    call(f"bounds/amounts/{_name}", bounded, _name, keep=of_amounts)
    call(f"bounds/places/{_name}", bounded, _name, keep=of_places)

_CERTIFICATES: dict[str, tuple[tuple[Any, Any], dict[str, Any]]] = {
    "bins/binary": (_SURE_TWO, {}),
    "bins/m3": (_SURE, {}),
    "bins/class:1": (_SURE, {"lens": "class:1", "n_bins": 4, "confidence": 0.9}),
    "bins/width": (_SURE, {"binning": binning.EqualWidth(5)}),
    "bins/tied": (TIED, {}),
    "bins/zeros": (ZEROS, {"lens": "class:2"}),
}
for _name, (_data, _options) in _CERTIFICATES.items():
    call(f"certificate/{_name}", caltest.certificate, *_data, keep=of_certificate, **_options)

# ------------------------------------------------------------------ comparisons

_TRUTH = dirichlet(120, 3, 51)
_MODELS = {"sharp": tempered(_TRUTH, 3.0), "true": _TRUTH, "flat": tempered(_TRUTH, 0.5)}
_COMPARED: dict[str, dict[str, Any]] = {
    "ckce": {"statistic": "ckce"}, "skce_uq": {"statistic": "skce_uq"}, "jkce": {"statistic": "jkce"},
    "ecd": {"statistic": "ecd", "groups": {"half": np.arange(120) % 2}},
    "citl": {"statistic": "citl", "lens": "class:1"},
    "ece": {"statistic": "ece", "lens": "top_label"},
    "brier": {"statistic": "brier", "confidence": 0.9}, "function": {"statistic": sure_and_wrong},
}  # fmt: skip
for _name, _options in _COMPARED.items():
    _arguments = (_MODELS, drawn(_TRUTH, 52))
    call(f"compare/{_name}", caltest.compare, *_arguments, keep=of_comparison, **_options)

# ------------------------------------------------------------------ planning

_PILOT = dirichlet(100, 3, 61)
_LESS = {"statistic": "citl", "lens": "class:1", "alternative": "less", "null": "normal"}
_PLANS: dict[str, tuple[Any, dict[str, Any]]] = {
    "overconfidence": (partial(pilot, _PILOT, overconfidence=0.1), {"statistic": "ks"}),
    "temperature": (partial(pilot, _PILOT, temperature=0.6), {"statistic": "ecd", "under_null": True}),
    "bias": (partial(pilot, _PILOT, bias=0.8, target=1), _LESS),
    "tolerance": (
        partial(pilot, _PILOT, overconfidence=0.2),
        {"tolerance": 0.02, "alternative": "over"},
    ),
    "omnibus": (partial(pilot, _PILOT, temperature=0.4), {"n_datasets": 10}),
    "simulated": (
        lambda: partial(simulation.tempered, alpha=[1, 1, 1], temperature=0.5),
        {"statistic": "ecd"},
    ),
}


def planned(name, *, rng, n_jobs):
    model, asked = _PLANS[name]
    return caltest.power(model(), [40, 90], **({"n_datasets": 24} | asked), rng=rng, n_jobs=n_jobs)


for _name in _PLANS:
    call(f"power/{_name}", planned, _name, keep=of_power)


def sized(*, rng, n_jobs, **options):
    model = pilot(np.full(10, 0.3), truth=np.tile([0.5, 0.5], (10, 1)))
    asked = {"alternative": "greater", "n_datasets": 48, "rng": rng, "n_jobs": n_jobs}
    return caltest.sample_size(model, "citl", **asked, **options)


call("sample_size/citl/normal", sized, null="normal", keep=of_sample_size)
call("sample_size/citl/monte_carlo", sized, max_n=400, keep=of_sample_size)

# ------------------------------------------------------------------ the squared error

_ESTIMATED: dict[str, tuple[tuple[Any, Any], dict[str, Any]]] = {
    "binary": (_SURE_TWO, {"functions": ["binning", "temperature"]}),
    "m3": (M3, {}),
    "top_label": (M3, {"lens": "top_label", "test_size": 0.3, "n_folds": 3}),
    "order": (BINARY, {"functions": "binning", "order": list(range(80))}),
}
for _name, (_data, _options) in _ESTIMATED.items():
    _function = caltest.estimate_squared_error
    call(f"squared_error/{_name}", _function, *_data, keep=of_squared_error, **_options)
