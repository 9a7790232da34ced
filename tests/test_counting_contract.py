"""Every public function takes weights, clusters and sampling rates, or says what to do instead."""

import inspect
from functools import partial

import numpy as np
import pytest
from support import labels_from, some_fast

import caltest
from caltest import InputError
from caltest.data import sample
from caltest.planning import pilot

RNG = np.random.default_rng(0)
PROBS = RNG.dirichlet(np.ones(2), 240)
LABELS = labels_from(PROBS, RNG)
GIVEN = {
    "weights": RNG.uniform(0.5, 2.0, 240),
    "clusters": np.arange(240) // 4,
    "sampling_rates": {0: 0.98},
}


class Model:
    classes_ = np.array([0, 1])

    def predict_proba(self, X):
        return PROBS


def _displays():
    for name in caltest.plots.__all__:
        of = getattr(caltest.plots, name)
        for method in ("from_predictions", "from_estimator"):
            if inspect.isclass(of) and hasattr(of, method) and hasattr(of, "from_estimator"):
                yield f"{name}.{method}"


#: How each is called, as short as it goes.
CALLS = {
    "test": lambda **o: caltest.test(PROBS, LABELS, "ecd", n_resamples=19, rng=0, **o),
    "estimate": lambda **o: caltest.estimate(PROBS, LABELS, "ecd", **o),
    "audit": lambda **o: caltest.audit(PROBS, LABELS, n_resamples=39, rng=0, **o),
    "assert_calibrated": lambda **o: caltest.assert_calibrated(
        PROBS, LABELS, alpha=0.01, n_resamples=399, **o
    ),
    "compare": lambda **o: caltest.compare({"a": PROBS, "b": 0.9 * PROBS + 0.05}, LABELS, "ecd", **o),
    "certificate": lambda **o: caltest.certificate(PROBS, LABELS, **o),
    "miscalibration_bounds": lambda **o: caltest.miscalibration_bounds(PROBS, LABELS, **o),
    "estimate_squared_error": lambda **o: caltest.estimate_squared_error(PROBS, LABELS, **o),
    "power": lambda **o: caltest.power(
        caltest.simulation.tempered(50, temperature=0.5, rng=0), 50, n_datasets=5, **o
    ),
    "sample_size": lambda **o: caltest.sample_size(
        caltest.simulation.tempered(50, temperature=0.5, rng=0), **o
    ),
    "planning.pilot": lambda **o: pilot(PROBS, temperature=0.8, **o),
    "plan": lambda **o: caltest.plan(PROBS, materiality=0.05, **o),
    "bin_table": lambda **o: caltest.bin_table(PROBS, LABELS, **o),
    "recalibration": lambda **o: caltest.recalibration(PROBS, LABELS, **o),
    "scorer": lambda **o: caltest.scorer("ecd", **o),
}


def _drawn(name, **options):
    display, _, method = name.partition(".")
    probs = (Model(), PROBS) if method == "from_estimator" else (PROBS,)
    make = getattr(getattr(caltest.plots, display), method)
    return make(*probs, LABELS, rng=0, n_resamples=39, **options)


CALLS |= {name: partial(_drawn, name) for name in _displays()}

#: What takes them; all others refuse.
_TESTS = {"test", "estimate", "audit", "assert_calibrated", "compare"}
TAKES = {
    "weights": _TESTS | {"bin_table", "plan", "recalibration", "planning.pilot"},
    "clusters": _TESTS | {"plan"},
    "sampling_rates": _TESTS | {"bin_table"},
}
for method in ("from_predictions", "from_estimator"):
    TAKES["weights"].add(f"ReliabilityDisplay.{method}")
    TAKES["sampling_rates"].add(f"ReliabilityDisplay.{method}")


def test_every_public_function_of_rows_is_here():
    of_rows = {"probs", "models", "model", "statistic"}
    for name in caltest.__all__:
        of = getattr(caltest, name)
        if inspect.isfunction(of) and of_rows & set(inspect.signature(of).parameters):
            assert name in CALLS, name


@pytest.mark.usefixtures("pictures")
@pytest.mark.parametrize("argument", GIVEN)
@pytest.mark.parametrize("name", CALLS)
def test_taken_or_unknown(name, argument):
    if name in TAKES[argument]:
        CALLS[name](**{argument: GIVEN[argument]})
    else:
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{argument}'"):
            CALLS[name](**{argument: GIVEN[argument]})


# ------------------------------------------------------------------ rows of weight 0

#: Every ninth row has weight 0, the first among them, and all rows of two clusters and of one region.
ORDER = RNG.permutation(240)
WARDS, REGION = ORDER % 30, np.array(["none", "north", "south"])[ORDER // 80]
COUNTING = (np.arange(240) % 9 > 0) & (WARDS != 4) & (WARDS != 7) & (REGION != "none")
SEVENTHS = np.where(COUNTING, RNG.integers(1, 6, 240) / 7, 0.0)
AGE, MEANS, NUMBERS = RNG.normal(size=(3, 240))
MEMBERS, TIMES = RNG.normal(size=(240, 7)), np.linspace(0.2, 3.0, 8)
SEEN, CAME = RNG.exponential(size=240).round(3), RNG.random(240) < 0.6
THREE = RNG.dirichlet(np.ones(3), 240)
OF_THREE = labels_from(THREE, RNG)
STATED = {
    "classes": lambda s: (THREE[s], OF_THREE[s]),
    "normal": lambda s: (caltest.predictive.Normal(MEANS[s], sd=np.ones(240)[s]), NUMBERS[s]),
    "members": lambda s: (caltest.predictive.Members(MEMBERS[s]), NUMBERS[s]),
    "times": lambda s: (
        caltest.predictive.Survival(np.exp(-np.outer(np.ones(240), TIMES))[s], TIMES),
        (SEEN[s], CAME[s]),
    ),
}


def _audited(law, s, **counting):
    groups = {"region": REGION[s], "age": AGE[s]}
    options = {"n_resamples": 199, "rng": 0, "min_rows": 20, "intersections": 1}
    return caltest.audit(*STATED[law](s), groups=groups, **options, **counting)


LEFT_OUT = {
    **{
        f"test of {x}": lambda s, x=x, **o: caltest.test(*STATED[x](s), n_resamples=39, rng=0, **o)
        for x in STATED
    },
    **{f"audit of {x}": partial(_audited, x) for x in STATED},
    "compare": lambda s, **o: caltest.compare(
        {"a": THREE[s], "b": 0.9 * THREE[s] + 0.1 / 3},
        OF_THREE[s],
        groups={"region": REGION[s], "age": AGE[s]},
        **o,
    ),
    "recalibration": lambda s, weights, clusters=None: caltest.recalibration(
        PROBS[s], LABELS[s], weights=weights
    ),
    **{
        null: lambda s, null=null, **o: caltest.test(
            PROBS[s], LABELS[s], "citl", null=null, n_resamples=39, rng=0, **o
        )
        for null in ("one_per_cluster", "comonotone")
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("weights", [SEVENTHS, COUNTING * 2.0], ids=["unequal", "equal"])
@pytest.mark.parametrize(
    "name",
    some_fast(LEFT_OUT, *(x for x in LEFT_OUT if x[:5] != "audit"), "audit of classes", mark="slow"),
)
def test_rows_of_weight_0_are_as_if_never_given(name, weights, clustered):
    """The user leaves them out, or the package does: the same result, to the last bit."""
    found = []
    for s in (np.arange(240), np.flatnonzero(COUNTING)):
        given = {"weights": weights[s]} | ({"clusters": WARDS[s]} if clustered else {})
        try:
            result = LEFT_OUT[name](s, **given).to_dict()
            found.append(repr(result | {"warnings": None, "call": None}))  # which are of all rows
        except InputError as error:
            found.append(str(error))
    assert found[0] == found[1]


#: What is about independent rows that count alike, given rows that carry something.
OF_ROWS = {
    "certificate": caltest.certificate,
    "bounds": partial(caltest.miscalibration_bounds, n_resamples=39),
    "squared error": caltest.estimate_squared_error,
    "fit": lambda rows, labels: caltest.estimation.HistogramBinning(2).fit(rows, labels),
    "recalibration": caltest.recalibration,
    "reliability": caltest.ReliabilityDisplay.from_predictions,
}
CARRIED = {
    "weights": ("takes no weights, and these rows have some", [*OF_ROWS][:4]),
    "clusters": ("takes rows to be independent", [name for name in OF_ROWS if name != "fit"]),
}


@pytest.mark.parametrize("argument", CARRIED)
def test_what_rows_carry_is_not_left_out_in_silence(argument):
    rows = sample(PROBS, LABELS, **{argument: GIVEN[argument]}).rows
    says, refusing = CARRIED[argument]
    for name in refusing:
        with pytest.raises(InputError, match=says):
            OF_ROWS[name](rows, LABELS)


def test_the_way_out_of_sampling_rates_works():
    found = caltest.certificate(sample(PROBS, LABELS, sampling_rates={0: 0.5}).rows, LABELS)
    kept = PROBS * [0.5, 1.0] / (PROBS * [0.5, 1.0]).sum(axis=1, keepdims=True)
    assert found.distance == pytest.approx(caltest.certificate(kept, LABELS).distance)


@pytest.mark.usefixtures("pictures")
def test_rows_kept_are_what_tables_and_pictures_are_about():
    kept = PROBS * [0.5, 1.0] / (PROBS * [0.5, 1.0]).sum(axis=1, keepdims=True)
    rates = {"sampling_rates": {0: 0.5}}
    table, expected = caltest.bin_table(PROBS, LABELS, **rates), caltest.bin_table(kept, LABELS)
    assert table.to_numpy(float) == pytest.approx(expected.to_numpy(float), nan_ok=True)
    draw = caltest.ReliabilityDisplay.from_predictions
    drawn = draw(PROBS, LABELS, rng=0, n_resamples=99, **rates)
    one, other = drawn.panels[0], draw(kept, LABELS, rng=0, n_resamples=99).panels[0]
    assert one.result.pvalue == other.result.pvalue
    assert one.title == f"{other.title}, rows kept"
    texts = [each.get_text() for each in drawn.figure_.findobj(lambda x: hasattr(x, "get_text"))]
    assert any("rows kept" in " ".join(each.split()) for each in texts)
