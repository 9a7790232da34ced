"""Strategies of calls: every public function, with options of which none, one or two are hostile."""

import re
from collections.abc import Mapping
from functools import cache

import fuzz_values as values
from fuzz_values import Sources, good_pairs, hostile, pairs, sources, words
from fuzzing import Call
from hypothesis import strategies as st

import caltest
from caltest.estimation import FUNCTIONS

Options = Mapping[str, Sources]

_CHEAP = {"rng": values.seeds, "n_jobs": sources("None", "1"), "n_resamples": sources("19", "39", "1")}
_LENS = {"lens": values.lenses}

_TEST: Options = {
    "statistic": values.statistics, "null": values.nulls,
    "alternative": words("greater", "less", "two-sided", "over", "under"),
    "tolerance": sources("None", "0.0", ".1", ".9"),
    "rounding": sources("None", "None", ".05", "1", ".03"), "weights": values.weights,
    "sampling_rates": values.sampling_rates, "clusters": values.clusters, **_LENS, **_CHEAP,
}  # fmt: skip
_COUNTED: Options = {name: _TEST[name] for name in ("weights", "clusters", "sampling_rates")}
_AUDIT: Options = {
    "groups": values.groups,
    "lenses": st.one_of(
        words("canonical", "classwise", "top_label", "class:0"),
        sources("['canonical', 'top:2']", "['sorted']"),
    ),
    "statistics": st.one_of(
        words("ece", "ks", "scan", "skce_uq"),
        sources("['ece', 'ks']", "{'canonical': 'ece'}", "['ecd']"),
    ),
    "alpha": values.fractions,
    "tolerance": sources("None", ".1", "0.0"),
    "correction": values.corrections,
    "min_rows": values.counts,
    **_COUNTED,
    **_CHEAP,
    "n_resamples": sources("99", "199", "39"),
}
_POWER: Options = {
    "statistic": values.statistics, "null": values.nulls, "alternative": _TEST["alternative"],
    "tolerance": _TEST["tolerance"], "alpha": values.fractions, "n_datasets": sources("1", "3"),
    **_LENS, **_CHEAP,
}  # fmt: skip

#: Of probabilities and labels.
ON_DATA: Mapping[str, Options] = {
    "caltest.test": _TEST,
    "caltest.estimate": {
        "statistic": values.statistics, **_LENS, **_COUNTED, "n_jobs": _CHEAP["n_jobs"]},
    "caltest.audit": _AUDIT,
    "caltest.assert_calibrated": _AUDIT,
    "caltest.bin_table": {"bins": values.counts, "clip": sources("None", "1e-3"),
    "weights": values.weights, **_LENS},
    "caltest.certificate": {
        "n_bins": values.counts,
        "binning": values.binnings,
        "confidence": values.fractions,
        **_LENS,
    },
    "caltest.miscalibration_bounds": {"confidence": values.fractions, **_LENS, **_CHEAP,
    "n_resamples": sources("99", "None")},
    "caltest.recalibration": {"weights": values.weights, **_LENS},
    "caltest.estimate_squared_error": {
        "functions": st.one_of(
            words(*FUNCTIONS, "all"), sources("['binning', 'temperature']",
                "caltest.estimation.HistogramBinning(3)", "[]")
        ),
        "pvalue": words("held_out", "none"),
        "test_size": values.fractions,
        "n_folds": sources("2", "3"),
        "order": sources("None", "range(24)", "[1, 0]", "[0, 0]", "'given'"),
        "regularization_scaling": words("usual", "published"),
        **_LENS,
        **_CHEAP,
    },
    "(lambda p, y, **k: caltest.planning.pilot(p, **k))": {
        "temperature": sources(".5", "2"),
        "bias": sources("1", "-.5"),
        "target": st.one_of(sources("0", "1", "'1'"), words("a")),
        "overconfidence": values.fractions,
        "truth": sources("lambda p: p", "lambda p: None", "lambda p: p * 2", "lambda p: p[:1]",
        "lambda p: -p"),
    },
    "caltest.ReliabilityDisplay.from_predictions": {
        "classes": sources("[0]", "['1']", "[0, 1]", "[9]", "None"),
        "binning": values.binnings,
        "curve": words("binned", "smooth", "isotonic", "corp"),
        "confidence": values.fractions,
        **_LENS,
        **_CHEAP,
    },
    "caltest.plots.CumulativeDisplay.from_predictions": {
        "confidence": values.fractions,
        **_LENS,
        **_CHEAP,
    },
    "caltest.data.sample": {},
    "caltest.files.scan_arrays": {},
    "(lambda p, y, **k: caltest.test(caltest.files.scan_arrays(p, y), None, **k))": _TEST,
}  # fmt: skip

#: Of a fitted thing that does not depend on what is drawn; ``made`` makes it, once.
ON_RESULTS: Mapping[str, Options] = {
    "made('test').rejects": {"alpha": values.fractions},
    "made('bounds').where": {"overlapping": sources("True")},
    "caltest.plots.NullDisplay.from_result": {"result": sources("made('test')", "made('moments')")},
    "caltest.plots.CertificateDisplay.from_result": {
        "result": sources("made('certificate')"), "against": words("scores", "rank", "shares")},
    "caltest.plots.BoundsDisplay.from_result": {"result": sources("made('bounds')"),
    "view": sources("0", "1")},
    "caltest.plots.ComparisonDisplay.from_result": {"result": sources("made('compare')")},
    "caltest.plots.PowerDisplay.from_result": {"result": sources("made('power')")},
    "caltest.plots.RiskDisplay.from_result": {"result": sources("made('estimate')")},
    "caltest.report.to_html": {"audit": sources("made('audit')"),
    "title": values.sources(*values.NAMES), "command": words("c")},
    "caltest.report.to_markdown": {"audit": sources("made('audit')"),
    "title": values.sources(*values.NAMES), "command": words("c")},
    "caltest.report.to_json": {"audit": sources("made('audit')")},
    "caltest.report.to_junit": {"audit": sources("made('audit')")},
    "unsaved": {"path": hostile, "title": words("t"), "command": words("c")},
}  # fmt: skip

#: Of options alone.
ON_OPTIONS: Mapping[str, Options] = {
    "routed": {"name": values.statistics, "weights": values.weights.map(lambda s: s.replace("N", "40")),
    "asked": sources("True", "True", "False", "None", "'sample_weight'", "1"),
    "enabled": sources("True", "True", "False")},
    "caltest.datasets.load_digits_predictions": {"model": words("naive_bayes", "naive_baies", "")},
    "caltest.binning.EqualWidth": {"n_bins": values.counts},
    "caltest.binning.EqualMass": {"n_bins": values.counts},
    "caltest.binning.Uniform": {"n_bins": values.counts},
    "caltest.binning.MedianVariance": {"min_size": values.counts},
    "caltest.binning.FromEdges": {"edges": sources("[0, 1]", "[.5]", "[1, 0]", "np.array([0, nan, 1])",
    "iter([0, 1])")},
    "caltest.kernels.Gaussian": {"bandwidth": sources("1", "'median'", "np.float32(.1)"),
    "distance": words("euclidean", "tv")},
    "caltest.kernels.Exponential": {"bandwidth": sources("1", "'median'"),
    "distance": words("hellinger", "tv", "kl")},
    "caltest.kernels.LinearGaussian": {"bandwidth": sources("1")},
    "caltest.kernels.MatrixKernel": {"parts": sources("[(caltest.kernels.Gaussian(), np.eye(2))]", "[]",
    "[(1, 2)]")},
    "caltest.kernels.Gaussian().__mul__": {"": sources("2", "caltest.kernels.Gaussian()")},
    "caltest.lenses.ClassSets": {"sets": sources("[[0], [1]]", "[[0, 0]]", "[0]", "[['a']]")},
    "caltest.lenses.ClassWise": {"which": sources("0", "'a'")},
    "caltest.lenses.TopK": {"k": values.counts},
    "caltest.lenses.find_lens": {"lens": values.lenses},
    "caltest.nulls.NormalApproximation": {"ddof": values.counts},
    "caltest.nulls.Bound": {"p": sources("1", "2", "inf"), "q": sources("2", "1")},
    "caltest.statistics.ECE": {"binning": values.binnings, "distance": words("tv", "l2", "euclidean")},
    "caltest.statistics.ACE": {"binning": values.binnings, "distance": words("tv", "l2")},
    "caltest.statistics.CKCE": {
        "kernel": values.kernels, "regularization": sources(".1", "'n^-1/4'"),
        "method": words("auto", "exact"),
        "features": values.counts, "groups": sources("[0, 1]"), "seed": sources("1")},
    "caltest.statistics.UnbiasedSKCE": {
        "kernel": values.kernels, "approximation": words("nystrom", "fourier", "auto"),
        "rank": values.counts},
    "caltest.statistics.HosmerLemeshow": {"groups": values.counts},
    "caltest.statistics.LogScore": {"clip": values.fractions},
    "caltest.statistics.ECD": {"clip": values.fractions},
    "caltest.statistics.SmoothECE": {"grid": values.counts},
    "caltest.statistics.Scan": {"side": words("both", "over", "under")},
    "caltest.statistics.Omnibus": {"multiples": sources("[1.0]", "(.5, 1)"),
    "approximation": words("auto")},
    "caltest.statistics.CoxRecalibration": {"test": words("wald", "likelihood_ratio")},
    "caltest.statistics.FunctionStatistic": {"function": sources("lambda p, y: 1.0", "len")},
    "caltest.estimation.HistogramBinning": {"n_bins": values.counts},
    "caltest.estimation.Temperature": {"temperature": sources(".5", "2")},
    "caltest.estimation.DirichletKernelDensity": {"bandwidth": sources(".5")},
    "caltest.estimation.TwoStepKernelRidge": {"regularization": sources(".5"),
    "kernel": values.kernels},
    "caltest.estimation.KroneckerKernelRidge": {"regularization": sources(".5"),
    "kernel": values.kernels},
    "caltest.simulation.tempered": {
        "n_samples": values.counts, "alpha": sources("(.1, .1)", "[1, 2, 3]", "[0]", "[nan]"),
        "temperature": sources(".5"), "rng": values.seeds},
    "caltest.predictive.GaussianPredictions": {"mean": sources("[[0., 1.]]", "[0.]"),
    "covariance": sources("[np.eye(2)]", "[1.]", "[-1.]")},
    "caltest.predictive.Ensemble": {"members": sources("[[0., 1.]]", "np.zeros((2, 3))"),
    "bandwidth": words("scott")},
    "caltest.data.Predictions": {"probs": sources("np.array([[.5, .5]])"),
    "classes": sources("('a', 'b')", "('a',)", "None")},
}  # fmt: skip


def _wrong(draw, given, most=2):
    """Make up to so many of the options hostile; often none, for a result is what is to be had."""
    for _ in range(min(draw(st.sampled_from([0, 0, 0, 1, 1, 2])), most, len(given))):
        given[draw(st.sampled_from(sorted(given)))] = draw(hostile)


def _chosen(draw, options, always=()):
    """Draw some of the options, with right values."""
    names = draw(
        st.lists(st.sampled_from(sorted(options)), max_size=4, unique=True) if options else st.just([])
    )
    return {name: draw(options[name]) for name in {**dict.fromkeys(always), **dict.fromkeys(names)}}


def _of(pair, given):
    """Fill in how many rows there are."""
    return tuple((name, re.sub(r"\bN\b", str(pair.rows), source)) for name, source in given.items())


def _repeats(given):
    return given.get("rng") in {"0", "1", "2**64"}


@st.composite
def data_calls(draw, of=pairs, most=2):
    """Draw a call of a function of predictions and labels."""
    function = draw(st.sampled_from(list(ON_DATA)))
    options, pair = ON_DATA[function], draw(of)
    always = tuple(name for name in ("n_resamples",) if name in options)
    if function == "caltest.estimate_squared_error":
        always += ("n_folds", "functions")
    given = _chosen(draw, options, always)
    _wrong(draw, given, most)
    return Call(
        function, (("", pair.probs), ("", pair.labels), *_of(pair, given)), repeated=_repeats(given)
    )


_COMPARE: Options = {
    "statistic": values.statistics,
    "confidence": values.fractions,
    "intersections": values.counts,
    **_COUNTED,
    **_LENS,
}
_MODEL_NAMES = ["'a', 'b'", "'a', 'a'", "'\\x1b[31m', 'b'", "1, 'b'", "'a\\nb', 'x' * 100_000"]
_SIMULATED = [
    "lambda n, rng: caltest.simulation.tempered(n, [1, 1], temperature=.5, rng=rng)", "lambda: 1",
    "lambda n, rng: None", "lambda n, rng: ([.5], [1])", "lambda n, rng: ([[.5, .5]] * n, [0] * n)",
]  # fmt: skip


@st.composite
def _comparisons(draw):
    first, second = draw(good_pairs()), draw(pairs)
    one, two = draw(st.sampled_from(_MODEL_NAMES)).split(", ", 1)
    same = f"{{{one}: P, {two}: np.flip(P, 0)}}"
    models = draw(sources(same, same, same, f"{{{one}: P, {two}: Q}}", "{}", "{'a': P}", "[P, Q]", "P"))
    filled = {"P": f"({first.probs})", "Q": f"({second.probs})"}
    models = re.sub(r"\b[PQ]\b", lambda at: filled[at[0]], models)
    given = _chosen(draw, _COMPARE, ("statistic",))
    _wrong(draw, given)
    every = (("", models), ("", first.labels), *_of(first, given))
    return Call("caltest.compare", every, repeated=_repeats(given))


@st.composite
def _simulations(draw):
    pair = draw(st.one_of(good_pairs(), good_pairs(), pairs))
    model = f"caltest.planning.pilot({pair.probs}, temperature=.5)"
    model = draw(st.sampled_from([model] * 6 + _SIMULATED))
    quick = ("n_datasets", "n_resamples")
    if draw(st.sampled_from([True, True, False])):
        options = {
            **_POWER,
            "n": sources("5", "[5, 9]", "1", "[]", "iter([4])"),
            "under_null": sources("True"),
        }
        function, given = "caltest.power", _chosen(draw, options, ("n", *quick))
    else:
        options = {
            **_POWER, "statistic": words("ece", "brier", "ks"), "null": words("monte_carlo", "moments"),
            "power": values.fractions, "min_n": sources("2", "5"), "max_n": sources("8", "16"),
        }  # fmt: skip
        always = ("min_n", "max_n", "statistic", *quick)
        function, given = "caltest.sample_size", _chosen(draw, options, always)
    _wrong(draw, given)
    return Call(function, (("", model), *given.items()), repeated=_repeats(given))


@st.composite
def _risks(draw):
    pair = draw(pairs)
    h = sources(
        "lambda *a: 1.0", "None", "caltest.estimation.HistogramBinning()", "lambda p: p", "object()"
    )
    return Call("caltest.estimation.risk", (("", draw(h)), ("", pair.probs), ("", pair.labels)))


def model_calls():
    """Draw calls that take several models, one that is simulated, or one that was fitted."""
    return st.one_of(_comparisons(), _comparisons(), _simulations(), _simulations(), _risks())


@st.composite
def option_calls(draw):
    """Draw a call of what takes options alone, or a result."""
    table = {**ON_OPTIONS, **ON_RESULTS}
    function = draw(st.sampled_from(sorted(table)))
    options = table[function]
    given = {
        name: draw(of)
        for name, of in options.items()
        if draw(st.sampled_from([True, True, True, False]))
    }
    _wrong(draw, given)
    return Call(function, tuple(given.items()))


@cache
def made(name):
    """Return a result to call methods of."""
    probs, labels = [[0.25, 0.75], [0.5, 0.5], [0.875, 0.125], [0.01, 0.99]] * 6, [1, 0, 0, 1] * 6
    model = caltest.planning.pilot(probs, temperature=0.5)
    return {
        "test": lambda: caltest.test(probs, labels, n_resamples=19, rng=1),
        "moments": lambda: caltest.test(probs, labels, "brier", null="moments", rng=1),
        "certificate": lambda: caltest.certificate(probs, labels),
        "bounds": lambda: caltest.miscalibration_bounds(probs, labels, rng=1, n_resamples=99),
        "compare": lambda: caltest.compare({"a": probs, "b": probs[::-1]}, labels, "ece"),
        "power": lambda: caltest.power(model, 5, "ece", n_datasets=2, n_resamples=19, rng=1),
        "estimate": lambda: caltest.estimate_squared_error(
            probs, labels, functions="binning", n_folds=2, rng=1
        ),
        "audit": lambda: caltest.audit(probs, labels, n_resamples=99, rng=1, min_rows=2),
    }[name]()


def unsaved(path, **options):
    """Save a report, and remove it, for that it is there is right."""
    caltest.report.save(made("audit"), path, **options)
    from pathlib import Path

    Path(path).unlink()
