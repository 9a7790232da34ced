"""What every statistic and every null promise, whatever is registered.

A pair either works, and then keeps all the promises, or is refused with the nulls that are possible.
"""

from __future__ import annotations

import json

import joblib
import numpy as np
import pytest
from support import dirichlet, labels_from, tied

import caltest
from caltest import InputError
from caltest._parallel import Workers
from caltest.data import Rows
from caltest.lenses import find_lens
from caltest.nulls import GUARANTEES, NULLS
from caltest.statistics import STATISTICS

ROWS = 600  # more than one tile, so that workers have something to share
PROBS = dirichlet(ROWS, 3, 0, 0.7)
LABELS = labels_from(PROBS, np.random.default_rng(1))
SMALL, FEW = PROBS[:60], LABELS[:60]


def form_of(statistic):
    """The statistic on the small data, seen through its default lens."""
    lens = find_lens(STATISTICS[statistic].default_lens)
    predictions = Rows(SMALL)
    return STATISTICS[statistic]().given(lens.reduce(predictions) if lens else predictions)


FORMS = {statistic: form_of(statistic) for statistic in STATISTICS}
EVERY_PAIR = [(statistic, null) for statistic in STATISTICS for null in NULLS]
PAIRS = [(statistic, null) for statistic, null in EVERY_PAIR if NULLS[null].fits(FORMS[statistic])]
REFUSED = [pair for pair in EVERY_PAIR if pair not in PAIRS]
ORDERLESS = [name for name in STATISTICS if not STATISTICS[name].depends_on_row_order]


def run(statistic, null, probs=SMALL, labels=FEW, rng=0, n_resamples=49, **options):
    return caltest.test(
        probs, labels, statistic, null=null, rng=rng, n_resamples=n_resamples, **options
    )


@pytest.mark.parametrize(("statistic", "null"), REFUSED)
def test_other_pairs_are_refused_with_the_possible_nulls(statistic, null):
    with pytest.raises(InputError, match="possible here: monte_carlo"):
        run(statistic, null)


def numbers(result):
    return result.statistic, result.pvalue, result.n_resamples, result.pvalue_interval


def test_every_statistic_has_the_exact_null():
    for statistic in STATISTICS:
        assert caltest.test(SMALL, FEW, statistic, n_resamples=9, rng=0).null == "monte_carlo"


@pytest.mark.parametrize("null", NULLS)
def test_every_null_fits_some_statistic(null):
    assert any(pair[1] == null for pair in PAIRS)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_statistics_describe_themselves(statistic):
    kind = STATISTICS[statistic]
    assert kind.name == statistic
    assert kind.measures
    assert kind.alternatives
    assert kind() == kind()
    assert kind.__doc__


@pytest.mark.parametrize("null", NULLS)
def test_nulls_describe_themselves(null):
    kind = NULLS[null]
    assert kind.name == null
    assert kind.guarantee in GUARANTEES
    assert kind.assumption
    assert kind.requires
    assert kind() == kind()


@pytest.mark.parametrize(("statistic", "null"), PAIRS)
def test_a_pair_works_or_says_what_does(statistic, null):
    result = run(statistic, null)
    assert 0.0 < result.pvalue <= 1.0
    assert np.isfinite(result.statistic)
    assert (result.name, result.null) == (statistic, null)
    assert result.guarantee == NULLS[null]().guarantee_for(FORMS[statistic])
    assert result.alternative in STATISTICS[statistic].alternatives
    assert result.n_samples == 60
    assert result.statistic == caltest.estimate(SMALL, FEW, statistic)
    assert json.loads(json.dumps(result.to_dict(draws=True), allow_nan=False))
    assert statistic in result.summary()
    if result.null_distribution is None:
        assert (result.n_resamples, result.pvalue_interval, result.seed) == (None, None, None)
    else:
        assert len(result.null_distribution) == result.n_resamples == 49
        assert not np.isnan(result.null_distribution).any()
        low, high = result.pvalue_interval
        assert 0.0 <= low <= high <= 1.0
        assert result.seed == 0


@pytest.mark.parametrize(("statistic", "null"), PAIRS)
def test_the_same_seed_gives_the_same_numbers(statistic, null):
    first = run(statistic, null, rng=3)
    again = run(statistic, null, rng=3)
    assert numbers(first) == numbers(again)
    other = run(statistic, null, rng=4)
    assert first.statistic == other.statistic
    if first.null_distribution is None:
        assert first.pvalue == other.pvalue  # no chance in it
    else:
        assert np.array_equal(first.null_distribution, again.null_distribution)


@pytest.mark.parametrize(("statistic", "null"), PAIRS)
def test_workers_do_not_change_a_number(statistic, null):
    draws = 40 if null == "consistency" else 130  # several blocks of work
    alone = run(statistic, null, PROBS, LABELS, n_resamples=draws, n_jobs=1)
    together = run(statistic, null, PROBS, LABELS, n_resamples=draws, n_jobs=2)
    assert numbers(together) == numbers(alone)
    for backend in ("threading", "loky"):
        with joblib.parallel_config(backend=backend, n_jobs=2):
            configured = run(statistic, null, PROBS, LABELS, n_resamples=draws)
        assert numbers(configured) == numbers(alone)
        if alone.null_distribution is not None:
            assert np.array_equal(configured.null_distribution, alone.null_distribution)


@pytest.mark.parametrize(("statistic", "null"), [pair for pair in PAIRS if pair[0] in ORDERLESS])
def test_row_order(statistic, null):
    """Another order of the rows: the same estimate, and the same p-value where none is drawn."""
    order = np.random.default_rng(5).permutation(60)
    one, other = run(statistic, null), run(statistic, null, SMALL[order], FEW[order])
    assert other.statistic == pytest.approx(one.statistic, rel=1e-9, abs=1e-13)
    if one.null_distribution is None:
        assert other.pvalue == pytest.approx(one.pvalue, rel=1e-6)


@pytest.mark.parametrize("statistic", ORDERLESS)
def test_row_order_among_ties(statistic):
    probs = tied(60, 3, 0)
    labels = labels_from(probs, np.random.default_rng(0))
    order = np.random.default_rng(5).permutation(60)
    one = caltest.estimate(probs, labels, statistic)
    other = caltest.estimate(probs[order], labels[order], statistic)
    assert other == pytest.approx(one, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_class_names_do_not_matter(statistic):
    names = np.array([2, 0, 1])  # class k becomes column names[k]
    permuted = np.empty_like(SMALL)
    permuted[:, names] = SMALL
    one = caltest.estimate(SMALL, FEW, statistic)
    assert caltest.estimate(permuted, names[FEW], statistic) == pytest.approx(one, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_blocks_of_draws(statistic):
    """A form gives a block of labels the values it gives them one by one, whatever the type."""
    form = form_of(statistic)
    classes = 2 if STATISTICS[statistic].default_lens else 3
    labels = np.random.default_rng(0).integers(0, classes, (70, 60)).astype(np.uint8)
    block = form.of_labels(labels)
    assert block.shape == (70,)
    assert block.dtype == np.float64
    single = [form.value(row.astype(np.intp)) for row in labels]
    assert block == pytest.approx(np.array(single), rel=1e-9, abs=1e-12)
    assert form.of_labels(labels, Workers(2)) == pytest.approx(block, rel=1e-12, abs=1e-15)


EXTREMES = {
    "two rows": ([[0.6, 0.4], [0.3, 0.7]], [0, 1]),
    "all equal": (np.full((20, 2), 0.5), [0, 1] * 10),
    "certain and right": (np.eye(2)[[0, 1] * 10], [0, 1] * 10),
    "certain and wrong": (np.eye(2)[[0, 1] * 10], [1, 0] * 10),
    "one class": (np.tile([0.9, 0.1], (20, 1)), [0] * 20),
    "saturated": (np.tile([1.0 - 1e-12, 1e-12], (20, 1)), [0] * 20),
    "tied": (tied(24, 3, 1), np.argmax(tied(24, 3, 1), axis=1)),
    "many classes": (dirichlet(20, 40, 1), np.arange(20)),
}


@pytest.mark.parametrize("case", EXTREMES)
@pytest.mark.parametrize(("statistic", "null"), PAIRS)
def test_extremes(statistic, null, case):
    """No warning, no p-value outside (0, 1]; refusals are InputErrors."""
    probs, labels = EXTREMES[case]
    try:
        result = caltest.test(probs, labels, statistic, null=null, n_resamples=19, rng=0)
    except InputError:
        return
    assert 0.0 < result.pvalue <= 1.0
    json.dumps(result.to_dict(draws=True), allow_nan=False)
    # There every possible outcome but one has a probability below 1e-10: it is no evidence.
    if case in ("certain and right", "saturated") and null in ("monte_carlo", "moments"):
        assert result.pvalue > 0.99
    if case == "all equal" and null == "monte_carlo" and statistic in ("skce_b", "skce_uq", "ece"):
        assert result.pvalue == 1.0  # as many of each class as can be
