"""The entropic calibration difference, of classes."""

import numpy as np
import pytest
from support import dirichlet, labels_from

import caltest
from caltest import InputError
from caltest.data import Rows
from caltest.statistics import ECD

# Five rows by hand, natural logarithms: ln 2 = .693147, ln 3 = 1.098612, ln 9 = 2.197225.
P5 = np.array([0.5, 0.75, 0.75, 0.1, 0.9])
Y5 = np.array([1, 1, 0, 0, 1])
BY_HAND = [
    0.0,
    -0.25 * 1.098612,  # (p − y) ln(p / (1 − p))
    0.75 * 1.098612,
    -0.1 * 2.197225,
    -0.1 * 2.197225,
]


def test_signs():
    rows = np.tile([0.9, 0.1], (40, 1))
    often, always = np.repeat([0, 1], [20, 20]), np.zeros(40, dtype=int)
    assert caltest.estimate(rows, often, "ecd") > 0  # right half the time, claims 90%
    assert caltest.estimate(rows, always, "ecd") < 0
    for labels, side in ((often, "greater"), (always, "less")):
        other = "less" if side == "greater" else "greater"
        for null in ("monte_carlo", "moments", "normal"):
            assert caltest.test(rows, labels, "ecd", null=null, alternative=side, rng=0).pvalue < 0.05
            assert caltest.test(rows, labels, "ecd", null=null, alternative=other, rng=0).pvalue > 0.5


IMPOSSIBLE = np.array([[1.0, 0.0], [0.6, 0.4], [0.0, 1.0], [0.3, 0.7]] * 5)


@pytest.mark.parametrize("null", ["monte_carlo", "moments", "normal"])
def test_impossible_labels(null):
    labels = np.array([0, 0, 1, 1, 0, 1, 1, 0, 0, 0, 1, 1, 0, 1, 1, 1, 0, 0, 1, 0])
    fine = caltest.test(IMPOSSIBLE, labels, "ecd", null=null, rng=0)
    assert np.isfinite(fine.statistic)
    assert fine.pvalue > 0.05
    labels[[2, 4]] = [0, 1]
    for side in ("two-sided", "greater"):
        broken = caltest.test(IMPOSSIBLE, labels, "ecd", null=null, alternative=side, rng=0)
        assert broken.statistic == np.inf
        assert 0 < broken.pvalue <= 0.002
        assert any("In 2 of 20 rows (counting from 0: 2, 4)" in note for note in broken.warnings)
    assert caltest.test(IMPOSSIBLE, labels, "ecd", null=null, alternative="less", rng=0).pvalue == 1.0


def test_clip_makes_it_finite():
    labels = IMPOSSIBLE.argmax(axis=1)
    labels[2] = 0
    result = caltest.test(IMPOSSIBLE, labels, ECD(clip=1e-7), rng=0)
    assert np.isfinite(result.statistic)
    assert result.parameters == {"clip": 1e-7}
    assert result.pvalue == 0.002
    # Its mean under H0 is 0 all the same.
    form = ECD(clip=0.3).given(Rows(dirichlet(30, 3, 0)))
    assert np.einsum("ik,ik->i", form.table, form.probs) == pytest.approx(np.zeros(30), abs=1e-15)


class TestBinTable:
    def test_by_hand(self):
        table = caltest.bin_table(P5, Y5, bins=4)
        assert list(table.index) == [
            "[0, 0.25]", "(0.25, 0.5]", "(0.5, 0.75]", "(0.75, 1]", "weighted sum",
        ]  # fmt: skip
        assert table["count"].tolist() == [1, 1, 2, 1, 5]
        third = table.loc["(0.5, 0.75]"]
        assert third["confidence"] == pytest.approx(0.75)
        assert third["frequency"] == pytest.approx(1 / 2)
        assert third["esce"] == pytest.approx(1 / 2 - 0.75)
        assert third["ece"] == pytest.approx(0.75 - 1 / 2)
        assert third["ecd"] == pytest.approx(np.mean([BY_HAND[i] for i in (1, 2)]), abs=1e-6)
        assert table.loc["(0.75, 1]", "ecd"] == pytest.approx(BY_HAND[4], abs=1e-6)

    def test_a_bin_without_rows(self):
        table = caltest.bin_table(P5, Y5, bins=5)
        assert table["count"].tolist() == [1, 0, 1, 2, 1, 5]
        assert table.loc["(0.2, 0.4]"].iloc[1:].isna().all()

    def test_edges_close_a_bin(self):
        p = np.arange(11) / 10
        table = caltest.bin_table(p, np.ones(11, dtype=int))
        assert table["count"].tolist() == [2] + [1] * 9 + [11]

    def test_more_classes_are_seen_through_a_lens(self):
        probs = dirichlet(100, 3, 0)
        labels = labels_from(probs, np.random.default_rng(0))
        assert caltest.bin_table(probs, labels).loc["weighted sum", "confidence"] == pytest.approx(
            probs.max(axis=1).mean()
        )
        one = caltest.bin_table(probs, labels, lens="class:1").loc["weighted sum", "confidence"]
        assert one == pytest.approx(probs[:, 1].mean())
        with pytest.raises(InputError, match="3 classes through the lens 'sorted'"):
            caltest.bin_table(probs, labels, lens="sorted")

    def test_impossible_labels_are_infinite(self):
        table = caltest.bin_table([0.0, 0.2, 0.9], [1, 0, 1], bins=2)
        assert table["ecd"].tolist()[0] == np.inf
        assert table.loc["weighted sum", "ecd"] == np.inf
        assert np.isfinite(caltest.bin_table([0.0, 0.2], [1, 0], clip=1e-6)["ecd"].iloc[-1])
