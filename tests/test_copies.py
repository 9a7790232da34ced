"""Rows that look like copies, or repeated measurements: noticed always, never without reason."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

import caltest

N, SETS = 3000, 20
COPIES, REPEATED = "Rows look like copies", "share their predictions, to the last digit"


def scores(rng, n=N):
    return rng.beta(0.7, 1.5, n)


def events(rng, chances):
    return (rng.random(len(chances)) < chances).astype(int)


def continuous(rng):
    p = scores(rng)
    return p, events(rng, p)


def three_decimals(rng):
    p = scores(rng)
    return np.round(p, 3), events(rng, p)


def step_in_the_rate(rng):
    p = np.round(scores(rng), 3)
    return p, events(rng, np.where(p > 0.4, 0.7, 0.2))


def three_classes(rng):
    probs = rng.dirichlet(np.ones(3), N)
    return probs, (probs.cumsum(axis=1)[:, :2] < rng.random((N, 1))).sum(axis=1)


def tree(errors):
    """A tree of 150 leaves, whose rates were found in 40 other rows each."""

    def draw(rng):
        truth = rng.beta(0.7, 1.5, 150)
        stated = rng.binomial(40, truth) / 40
        leaves = rng.integers(0, 150, N)
        return np.clip(stated if errors else truth, 0.02, 0.98)[leaves], events(rng, truth[leaves])

    return draw


def isotonic(rng):
    x, y = rng.random(600), rng.random(600)
    fitted = IsotonicRegression(out_of_bounds="clip").fit(x, y < x)
    p = np.clip(fitted.predict(rng.random(N)), 0.01, 0.99)
    return p, events(rng, p)


def certain(rng):
    p = rng.integers(0, 2, N)
    return p.astype(float), p


def again(share, times=1):
    """Some rows stand again, or all of them ten times."""

    def draw(rng):
        n = N // times if times > 1 else round(N / (1 + share))
        p = scores(rng, n)
        labels = events(rng, p)
        rows = np.tile(np.arange(n), times)
        rows = np.append(rows, rng.choice(n, round(share * n), replace=False))
        return p[rows], labels[rows]

    return draw


def found(draw, seed):
    return asked(*draw(np.random.default_rng([2026, seed])))


def asked(probs, labels):
    """Return what a test says of such rows."""
    premises = caltest.test(probs, labels, "brier", n_resamples=9, rng=0).premises
    return [str(each) for each in premises if each.name == "independent rows"]


@pytest.mark.parametrize("draw", [again(0.0, 10), again(0.2), again(0.03)], ids=["ten", "20%", "3%"])
def test_copies_are_noticed(draw):
    for seed in range(SETS):
        (sentence,) = found(draw, seed)
        assert COPIES in sentence
        assert "clusters=" in sentence


@pytest.mark.parametrize(
    "draw",
    [
        continuous, three_decimals, step_in_the_rate, three_classes, tree(errors=False),
        tree(errors=True), isotonic, certain,
    ],
    ids=lambda draw: getattr(draw, "__qualname__", ""),
)  # fmt: skip
def test_nothing_is_said_without_reason(draw):
    for seed in range(SETS):
        assert not found(draw, seed)


@pytest.mark.parametrize("classes", [2, 5])
def test_repeated_measurements_are_asked_for(classes):
    """Ten rows a patient with the same prediction, whose labels differ as they should."""
    for seed in range(SETS):
        rng = np.random.default_rng([2026, seed])
        probs = np.repeat(rng.dirichlet(np.ones(classes), N // 10), 10, axis=0)
        labels = (probs.cumsum(axis=1)[:, :-1] < rng.random((N, 1))).sum(axis=1)
        assert REPEATED in str(*asked(probs, labels))


def test_labels_that_were_used_to_fit_are_noticed():
    rng = np.random.default_rng(0)
    p = np.repeat(scores(rng, 200), 10)
    assert "if the labels were used to fit" in str(*asked(p, np.repeat(events(rng, p[::10]), 10)))


def test_what_is_said_counts_pairs():
    """By hand: 60 pairs, of which Σ 2 p (1 − p) should differ and none does."""
    pairs = [(0.25 + 0.01 * k) for k in range(60)]
    p = np.repeat(pairs, 2)
    labels = np.repeat(np.arange(60) % 2, 2)
    sentence = str(*asked(p, labels))
    expected = sum(2 * each * (1 - each) for each in pairs)
    assert f"about {expected:,.0f} should have different labels, and 0 have" in sentence
    labels[0] = 1 - labels[0]  # 1 of 25
    assert asked(p, labels) == []


def test_a_test_says_so_and_with_clusters_it_does_not():
    p, labels = again(0.0, 10)(np.random.default_rng(1))
    loud = caltest.test(p, labels, "ecd", n_resamples=9, rng=0)
    assert any(COPIES in each.seen for each in loud.premises)
    assert COPIES in " ".join(loud.summary().split())
    clusters = np.tile(np.arange(N // 10), 10)
    quiet = caltest.test(p, labels, "ecd", clusters=clusters, n_resamples=9, rng=0)
    assert not any(COPIES in each.seen for each in quiet.premises)
    sided = caltest.test(p, labels, tolerance=0.02, n_resamples=9, rng=0)
    assert any(COPIES in each.seen for each in sided.premises)
