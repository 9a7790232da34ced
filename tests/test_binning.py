"""Binnings: hand-sized partitions, edges, ties, and nothing dropped."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from caltest.binning import EqualMass, EqualWidth, FromEdges, MedianVariance, Uniform, intervals
from caltest.data import Rows
from caltest.exceptions import InputError

HAND = np.array([[0.4, 0.1, 0.5], [0.5, 0.3, 0.2], [0.3, 0.7, 0.0], [0.1, 0.0, 0.9], [0.8, 0.1, 0.1]])


def binary(scores):
    scores = np.asarray(scores, dtype=float)
    return Rows(np.column_stack([1.0 - scores, scores]))


def groups(cells):
    return {frozenset(np.flatnonzero(cells == cell).tolist()) for cell in np.unique(cells)}


def test_median_variance_hand_sized():
    assert groups(MedianVariance(2).cells(Rows(HAND))) == {frozenset({2, 4}), frozenset({0, 1, 3})}
    assert groups(MedianVariance(3).cells(Rows(HAND))) == {frozenset(range(5))}


@pytest.mark.parametrize(
    ("value", "cell"), [(0.0, 1), (0.1, 1), (0.3, 3), (0.45, 5), (0.7, 7), (0.70001, 8), (1.0, 10)]
)
def test_uniform_cells_are_right_closed(value, cell):
    # The first axis; the second one tells the rows apart no further.
    one = np.array([value])
    assert intervals(one, EqualWidth(10).edges_of(one)).tolist() == [cell - 1]
    middle = (cell - 0.5) / 10
    probs = np.array([[value, 0.5 - value / 2, 0.5 - value / 2]] * 2)
    probs[1, 0] = middle
    assert len(set(Uniform(10).cells(Rows(probs)))) == 1


@pytest.mark.parametrize("n_bins", [1, 2, 3, 7, 10, 15])
def test_values_on_edges_land_in_the_bin_below(n_bins):
    edges = np.arange(n_bins + 1) / n_bins
    assert intervals(edges, EqualWidth(n_bins).edges_of(edges)).tolist() == [0, *range(n_bins)]


def test_equal_mass_is_equal_without_ties_and_keeps_ties_together():
    scores = np.random.default_rng(0).permutation(np.arange(30) / 30)
    assert np.bincount(EqualMass(10).cells(binary(scores))).tolist() == [3] * 10
    tied = np.array([0.2] * 10 + [0.5] * 3 + [0.9])
    cells = EqualMass(5).cells(binary(tied))
    assert len({*cells[:10]}) == len({*cells[10:13]}) == 1


def test_equal_mass_more_bins_than_rows():
    assert sorted(EqualMass(15).cells(binary([0.1, 0.4, 0.9]))) == [0, 1, 2]


def test_from_edges_covers_or_complains():
    assert FromEdges([0, 0.5, 1]).cells(binary([0.0, 0.5, 0.6, 1.0])).tolist() == [0, 0, 1, 1]
    with pytest.raises(InputError, match=r"score 0\.9 of row 1 .* lies outside the edges 0 to 0\.8"):
        FromEdges([0, 0.8]).cells(binary([0.1, 0.9]))


@pytest.mark.parametrize("binning", [EqualWidth(5), EqualMass(5), FromEdges([0, 1])])
def test_score_binnings_refuse_many_classes(binning):
    with pytest.raises(InputError, match="give a lens such as 'top_label'"):
        binning.cells(Rows(HAND))


def test_uniform_with_a_thousand_classes():
    probs = np.random.default_rng(0).dirichlet(np.full(1000, 0.01), 500)
    cells = Uniform(10).cells(Rows(probs))
    assert cells.min() == 0
    assert len(np.unique(cells)) == cells.max() + 1 <= 500


@pytest.mark.slow
@given(
    arrays(float, st.integers(2, 40), elements=st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.7, 0.999, 1.0])),
    st.randoms(use_true_random=False),
)
def test_every_row_has_one_bin_whatever_the_order(scores, random):
    order = list(range(len(scores)))
    random.shuffle(order)
    for binning in (
        Uniform(10),
        EqualWidth(4),
        EqualMass(4),
        MedianVariance(2),
        FromEdges([0, 0.5, 1]),
    ):
        cells = binning.cells(binary(scores))
        assert len(cells) == len(scores)
        assert set(cells) == set(range(cells.max() + 1))
        shuffled = np.empty_like(cells)
        shuffled[order] = binning.cells(binary(scores[order]))
        assert groups(shuffled) == groups(cells)


def test_many_edges_are_right_closed_as_few_are():
    """They are searched for, where few are counted."""
    edges = np.arange(1001) / 1000
    found = EqualWidth(1000).cells(Rows(np.column_stack([1.0 - edges, edges])))
    assert found.tolist() == [0, *range(1000)]
