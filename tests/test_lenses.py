"""Lenses against hand counts, and drawing after reducing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import dirichlet, tied

from caltest.data import Rows, Sample, sample
from caltest.laws import Classes
from caltest.lenses import LENSES as REGISTERED
from caltest.lenses import ClassWise, Lens, Sorted, TopK, TopLabel, find_lens, through

# Binary fractions: sums are exact. The second row has a tie, the last two are certain.
PROBS = np.array(
    [
        [0.5, 0.25, 0.125, 0.125], [0.0, 0.5, 0.5, 0.0], [0.125, 0.125, 0.25, 0.5],
        [0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0],
    ]
)  # fmt: skip
LABELS = np.array([0, 2, 2, 3, 1])
SAMPLE = sample(PROBS, LABELS)

VIEWS = [
    (TopLabel(), [0.5, 0.5, 0.5, 1.0, 1.0], [1, 0, 0, 1, 0]),
    (ClassWise(2), [0.125, 0.5, 0.25, 0.0, 1.0], [0, 1, 1, 0, 0]),
    (TopK(1), [0.5, 0.5, 0.5, 1.0, 1.0], [1, 0, 0, 1, 0]),
    (TopK(2), [0.75, 1.0, 0.75, 1.0, 1.0], [1, 1, 1, 1, 0]),
    (TopK(3), [0.875, 1.0, 0.875, 1.0, 1.0], [1, 1, 1, 1, 1]),
]


@pytest.mark.parametrize(("lens", "event", "labels"), VIEWS, ids=[v[0].label for v in VIEWS])
def test_two_class_views(lens, event, labels):
    view = through(SAMPLE, lens)[0]
    assert view.rows.probs.tolist() == [[1 - p, p] for p in event]
    assert view.labels.tolist() == labels


def test_sorted():
    view = through(SAMPLE, Sorted())[0]
    assert view.rows.probs.tolist()[0] == [0.5, 0.25, 0.125, 0.125]
    assert view.rows.probs.tolist()[2] == [0.5, 0.25, 0.125, 0.125]
    assert view.labels.tolist() == [0, 1, 1, 0, 2]


LENSES = [TopLabel(), ClassWise(0), ClassWise(3), TopK(2), TopK(4), Sorted()]


@pytest.mark.parametrize("lens", LENSES, ids=[lens.label for lens in LENSES])
@given(seed=st.integers(0, 10**6), alpha=st.sampled_from([0.02, 0.3, 5.0]))
def test_views_are_predictions(lens, seed, alpha):
    """Rows stay on the simplex, and a class of the view gets the mass of what it stands for."""
    probs = dirichlet(4, 5, seed, alpha)
    predictions = Rows(probs)
    reduced = lens.show(predictions).rows.probs
    assert reduced.min() >= 0.0
    assert reduced.max() <= 1.0
    assert reduced.sum(axis=1) == pytest.approx(np.ones(4), abs=1e-12)
    mass = np.zeros_like(reduced)
    for k in range(5):
        seen = lens.show(predictions).outcomes(np.full(4, k))
        mass[np.arange(4), seen] += probs[:, k]
    assert reduced == pytest.approx(mass, abs=1e-12)


@pytest.mark.parametrize("lens", LENSES, ids=[lens.label for lens in LENSES])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.intp])
def test_blocks_of_labels_are_reduced_row_by_row(lens, dtype):
    predictions = Rows(np.vstack([dirichlet(5, 5, 3), tied(6, 5, 4)]))
    block = np.random.default_rng(0).integers(0, 5, (7, 11)).astype(dtype)
    reduced = lens.show(predictions).outcomes(block)
    assert reduced.shape == (7, 11)
    for row, labels in zip(reduced, block, strict=True):
        assert row.tolist() == lens.show(predictions).outcomes(labels.astype(np.intp)).tolist()


@pytest.mark.parametrize("m", [2, 256, 257, 300])
def test_ranks_of_many_classes(m):
    """Small integer types hold every rank."""
    predictions = Rows(dirichlet(3, m, 1))
    labels = np.array([0, m // 2, m - 1])
    above = (predictions.probs > predictions.probs[np.arange(3), labels][:, None]).sum(axis=1)
    assert Sorted().show(predictions).outcomes(labels).tolist() == above.tolist()
    if m > 2:
        inside = TopK(m - 1).show(predictions).outcomes(labels)
        assert inside.tolist() == (above < m - 1).astype(int).tolist()


@pytest.mark.parametrize("name", ["top_label", "class:1", "top:2", "sorted"])
def test_labels_name_the_lens(name):
    lens = find_lens(name)
    assert isinstance(lens, Lens)
    assert lens.label == name
    assert find_lens(lens) is lens


def test_class_by_name():
    named = Sample(Rows(Classes(PROBS, ("ant", "bee", "cat", "dog"))), LABELS)
    by_name, by_number = through(named, "class:cat")[0], through(named, "class:2")[0]
    assert np.array_equal(by_name.rows.probs, by_number.rows.probs)
    assert by_name.labels.tolist() == by_number.labels.tolist() == [0, 1, 1, 0, 0]
    assert by_name.rows.classes == ("another", "cat")


def test_a_number_is_a_place_even_where_names_are_numbers():
    named = Sample(Rows(Classes(PROBS, ("1", "2", "3", "4"))), LABELS)
    assert [through(named, ClassWise(k))[0].rows.classes[1] for k in range(4)] == ["1", "2", "3", "4"]
    assert through(named, "class:1")[0].rows.classes[1] == "1"


def test_no_lens():
    assert find_lens(None) is None


def test_notes_pass_through():
    noted = Rows(PROBS, notes=("a note",))
    for lens in (TopLabel(), ClassWise(0), TopK(2), Sorted()):
        assert lens.show(noted).rows.notes == ("a note",)


def test_every_lens_says_in_one_line_what_it_looks_at():
    """The help of commands has that line beside the name."""
    for name, maker in REGISTERED.items():
        assert len(maker.__doc__.partition("\n")[0]) > 20, name
        assert not maker.__doc__.startswith("Return"), name
