"""Strategies of calls: every public function, with options of which none, one or two are hostile."""

import re
from collections.abc import Mapping

import fuzz_values as values
from fuzz_values import Sources, good_pairs, hostile, pairs, sources, words
from fuzzing import Call
from hypothesis import strategies as st

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
        "n_bins": values.counts, "binning": values.binnings, "confidence": values.fractions, **_LENS,
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
        "classes": sources("[0]", "['1']", "[0, 1]", "[9]", "None"), "binning": values.binnings,
        "curve": words("binned", "smooth", "isotonic", "corp"), "confidence": values.fractions,
        **_LENS, **_CHEAP,
    },
    "caltest.data.sample": {},
    "caltest.files.scan_arrays": {},
    "(lambda p, y, **k: caltest.test(caltest.files.scan_arrays(p, y), None, **k))": _TEST,
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
    "statistic": values.statistics, "confidence": values.fractions, "intersections": values.counts,
    **_COUNTED, **_LENS,
}  # fmt: skip
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
    h = sources("lambda *a: 1.0", "None", "caltest.estimation.HistogramBinning()", "lambda p: p", "1")
    return Call("caltest.estimation.risk", (("", draw(h)), ("", pair.probs), ("", pair.labels)))


def model_calls():
    """Draw calls that take several models, one that is simulated, or one that was fitted."""
    return st.one_of(_comparisons(), _comparisons(), _simulations(), _simulations(), _risks())
