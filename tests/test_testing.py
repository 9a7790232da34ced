"""`test` and `estimate`: what goes in, what is refused, and properties of what comes out."""

import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import P6, Y6, dirichlet, labels_from

import caltest
from caltest import InputError
from caltest.data import Rows, sample
from caltest.kernels import Exponential
from caltest.lenses import TopLabel
from caltest.nulls import Bound, MonteCarlo, NormalApproximation, find_null, possible_nulls
from caltest.statistics import BiasedSKCE, LinearSKCE, UnbiasedSKCE, find_statistic

SKCES = ["skce_b", "skce_uq", "skce_ul"]


def hits(probs, labels):
    return float(np.mean(probs.argmax(axis=1) == labels))


def quick(*arguments, **options):
    return caltest.test(*arguments, **{"n_resamples": 19, "rng": 0, **options})


# ------------------------------------------------------------------ errors


def test_an_impossible_pair_is_refused_before_any_work():
    def never(probs, labels):
        raise AssertionError("evaluated")

    with pytest.raises(InputError, match="possible here: monte_carlo"):
        caltest.test(P6, Y6, never, null="bootstrap")


def test_functions_that_fail_on_drawn_labels_only():
    def fragile(probs, labels):
        return 1.0 if np.array_equal(labels, Y6) else np.nan

    with pytest.raises(InputError, match="for every vector of labels"):
        quick(P6, Y6, fragile)


def test_errors_of_a_function_are_its_own():
    def broken(probs, labels):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        quick(P6, Y6, broken)


def test_collected_by_no_test_runner():
    assert caltest.test.__test__ is False


# ------------------------------------------------------------------ what goes in


def test_names_objects_and_classes_are_the_same():
    one = quick(P6, Y6, "skce_ul", null="normal", lens="top_label").pvalue
    assert quick(P6, Y6, LinearSKCE(), null=NormalApproximation(), lens=TopLabel()).pvalue == one
    assert quick(P6, Y6, LinearSKCE, null=NormalApproximation, lens=TopLabel()).pvalue == one
    assert find_statistic("skce_b") == BiasedSKCE()
    assert find_null(None) == find_null("monte_carlo") == MonteCarlo()
    assert find_null(Bound(1)) == Bound(1)


def test_possible_nulls_follow_from_the_form():
    predictions = Rows(P6)
    assert possible_nulls(BiasedSKCE().given(predictions))[:3] == ["monte_carlo", "moments", "bound"]
    assert "bootstrap" in possible_nulls(UnbiasedSKCE().given(predictions))
    assert "normal" in possible_nulls(LinearSKCE().given(predictions))


def test_predictions_are_taken_as_they_are():
    assert quick(sample(P6, Y6).rows, Y6).to_dict() == quick(P6, Y6).to_dict()
    assert quick(Rows(P6 * (1 + 1e-7)), Y6).warnings == quick(P6, Y6).warnings


def test_binary_columns():
    ones, labels = np.array([0.2, 0.7, 0.9, 0.4, 0.5]), [0, 1, 1, 1, 0]
    two = np.column_stack([1 - ones, ones])
    assert caltest.estimate(ones, labels) == pytest.approx(caltest.estimate(two, labels))


def test_signature_is_the_contract():
    """Names, order, kinds and defaults that other tools rely on."""
    assert {
        name: (p.default, p.kind is p.KEYWORD_ONLY)
        for name, p in inspect.signature(caltest.test).parameters.items()
    } == {
        "probs": (inspect.Parameter.empty, False), "labels": (None, False),
        "statistic": (None, False), "null": (None, True), "lens": (None, True),
        "alternative": (None, True), "tolerance": (None, True), "rounding": (None, True),
        "weights": (None, True), "clusters": (None, True), "sampling_rates": (None, True),
        "class_names": (None, True), "features": (None, True), "order": (None, True),
        "logits": (False, True), "n_resamples": (None, True),
        "rng": (None, True), "n_jobs": (None, True), "progress": (False, True),
    }  # fmt: skip


def test_the_input_is_left_alone():
    probs, labels = P6.copy(), Y6.copy()
    quick(probs, labels, "skce_b", lens="sorted")
    assert np.array_equal(probs, P6)
    assert np.array_equal(labels, Y6)
    assert probs.flags.writeable


@pytest.mark.parametrize("progress", [False, True])
def test_quiet_off_a_terminal(progress, capsys):
    quick(dirichlet(600, 3, 0), np.zeros(600, int), n_resamples=99, progress=progress)
    assert capsys.readouterr() == ("", "")


# ------------------------------------------------------------------ functions get exact p-values


def test_a_function_by_hand():
    """Two rows, four outcomes: 10⁴ draws give P(T ≥ t) within five standard errors."""
    probs = np.array([[0.5, 0.5], [0.2, 0.8]])

    def label_sum(probs, labels):
        return float(labels.sum())

    for labels, chance in (([1, 1], 0.4), ([0, 1], 0.9), ([0, 0], 1.0)):
        p = quick(probs, labels, label_sum, n_resamples=10_000).pvalue
        assert p == pytest.approx(chance, abs=5 * np.sqrt(chance * (1 - chance) / 10_000) + 1e-3)
    low = quick(probs, [0, 0], label_sum, n_resamples=10_000, alternative="less").pvalue
    assert low == pytest.approx(0.1, abs=0.016)
    both = quick(probs, [0, 0], label_sum, n_resamples=10_000, alternative="two-sided").pvalue
    assert both == pytest.approx(2 * low)


def test_a_function_and_the_statistic_itself_agree():
    """The same draws, the same ranks: the same p-value to the last digit."""
    kernel = Exponential(0.5)

    def by_hand(probs, labels):
        D = np.eye(probs.shape[1])[labels] - probs
        h = kernel(probs, probs) * (D @ D.T)
        n = len(probs)
        return float((h.sum() - np.trace(h)) / (n * (n - 1)))

    probs = dirichlet(25, 3, 0)
    labels = labels_from(probs, np.random.default_rng(0))
    plain = caltest.test(probs, labels, by_hand, rng=8, n_resamples=199)
    own = caltest.test(probs, labels, UnbiasedSKCE(kernel), rng=8, n_resamples=199)
    assert plain.pvalue == own.pvalue
    assert plain.null_distribution == pytest.approx(own.null_distribution, rel=1e-8, abs=1e-12)
    assert (plain.name, plain.guarantee) == ("by_hand", "exact")


def test_functions_in_parallel():
    one, two = (quick(P6, Y6, hits, n_jobs=n_jobs).null_distribution for n_jobs in (1, 2))
    assert np.array_equal(one, two)


def test_infinite_values_are_values():
    """An outcome that a function calls infinitely bad has the smallest p-value, not an error."""

    def log_loss(probs, labels):
        with np.errstate(divide="ignore"):
            return float(-np.log(probs[np.arange(len(labels)), labels]).sum())

    probs = np.tile([1.0, 0.0], (5, 1))
    assert quick(probs, [0, 0, 1, 0, 0], log_loss).pvalue == 1 / 20
    assert quick(probs, [0] * 5, log_loss).pvalue == 1.0


# ------------------------------------------------------------------ lenses


def test_the_lens_of_two_classes_is_no_other_view():
    """SKCE through class:1 of two classes is the same number."""
    probs = dirichlet(30, 2, 0)
    labels = labels_from(probs, np.random.default_rng(1))
    for name in SKCES:
        assert caltest.estimate(probs, labels, name, lens="class:1") == pytest.approx(
            caltest.estimate(probs, labels, name), rel=1e-10
        )


# ------------------------------------------------------------------ random numbers


def test_rng_of_every_kind():
    value = 20261121
    kinds = {
        "int": lambda: value,
        "numpy int": lambda: np.int64(value),
        "sequence": lambda: np.random.SeedSequence(value),
        "generator": lambda: np.random.default_rng(value),
    }
    for name, make in kinds.items():
        first, second = (quick(P6, Y6, rng=make(), n_resamples=99) for _ in range(2))
        assert np.array_equal(first.null_distribution, second.null_distribution), name
        again = quick(P6, Y6, rng=first.seed, n_resamples=99)
        assert np.array_equal(first.null_distribution, again.null_distribution), name
        assert isinstance(first.seed, int)


def test_no_rng_differs_and_can_be_repeated():
    one, other = (quick(P6, Y6, rng=None, n_resamples=99) for _ in range(2))
    assert one.seed != other.seed
    assert not np.array_equal(one.null_distribution, other.null_distribution)
    again = quick(P6, Y6, rng=one.seed, n_resamples=99)
    assert np.array_equal(again.null_distribution, one.null_distribution)


def test_a_generator_moves_on():
    rng = np.random.default_rng(0)
    one, other = (quick(P6, Y6, rng=rng, n_resamples=99) for _ in range(2))
    assert not np.array_equal(one.null_distribution, other.null_distribution)


def test_no_global_state():
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    quick(P6, Y6, null="bootstrap")
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_more_draws_begin_with_the_same_ones():
    few, many = (quick(P6, Y6, n_resamples=n).null_distribution for n in (50, 333))
    assert many[:50] == pytest.approx(few, rel=1e-12, abs=1e-15)


# ------------------------------------------------------------------ properties


@st.composite
def data(draw):
    """Predictions of every kind: smooth, sparse, certain, tied; labels of any kind."""
    m, n = draw(st.integers(2, 4)), draw(st.integers(2, 12))
    alpha = draw(st.sampled_from([0.02, 0.3, 1.0, 20.0]))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    probs = rng.dirichlet(np.full(m, alpha), n)
    if draw(st.booleans()):
        probs[rng.random(n) < 0.5] = np.eye(m)[rng.integers(m)]
    if draw(st.booleans()):
        probs = probs[rng.integers(0, n, n)]
    return probs, rng.integers(0, m, n)


@pytest.mark.slow
@settings(max_examples=60)
@given(data(), st.sampled_from(SKCES), st.integers(0, 100))
def test_pvalues_are_probabilities(pair, statistic, seed):
    probs, labels = pair
    for null in ("monte_carlo", "moments", "bound"):
        result = caltest.test(probs, labels, statistic, null=null, n_resamples=19, rng=seed)
        assert 0.0 < result.pvalue <= 1.0
        again = caltest.test(probs, labels, statistic, null=null, n_resamples=19, rng=seed)
        assert (again.statistic, again.pvalue) == (result.statistic, result.pvalue)


@settings(max_examples=60)
@given(data(), st.sampled_from(SKCES), st.randoms(use_true_random=False))
def test_class_order_is_no_matter(pair, statistic, random):
    probs, labels = pair
    order = list(range(probs.shape[1]))
    random.shuffle(order)
    places = np.argsort(order)
    one = caltest.estimate(probs, labels, statistic)
    assert caltest.estimate(probs[:, order], places[labels], statistic) == pytest.approx(
        one, rel=1e-9, abs=1e-13
    )


@settings(max_examples=60)
@given(data())
def test_the_biased_skce_is_never_negative(pair):
    assert caltest.estimate(*pair, "skce_b") >= -1e-15
