"""Members of ensembles: by hand, exactness, power, what changes nothing, pictures, refusals."""

from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pytest
import scipy.stats
from support import binomial_limits, sentence

import caltest
from caltest.data import Rows
from caltest.laws import Pool
from caltest.lenses import show
from caltest.plots import PITDisplay
from caltest.predictive import Members, Normal, Quantiles
from caltest.statistics import SKCEOfNumbers

ROWS = 40


def ensemble(seed, members=4, rows=ROWS, scale=1.0, digits=None):
    """Members of spread ``scale``, and outcomes of spread 1, about a place that differs by row."""
    rng = np.random.default_rng(seed)
    centre = rng.normal(size=(rows, 1))
    values = centre + scale * rng.normal(size=(rows, members))
    outcomes = centre[:, 0] + rng.normal(size=rows)
    return (values, outcomes) if digits is None else (values.round(digits), outcomes.round(digits))


def vectors(seed, members=4, rows=ROWS, entries=3, stated=0.9, true=0.9, digits=None):
    """Members that are vectors with a stated correlation of entries, and outcomes with a true one."""
    rng = np.random.default_rng(seed)

    def drawn(shape, correlation):
        shared, own = rng.normal(size=(*shape, 1)), rng.normal(size=(*shape, entries))
        return correlation**0.5 * shared + (1.0 - correlation) ** 0.5 * own

    centre = rng.normal(size=(rows, entries))
    values, outcomes = centre[:, None] + drawn((rows, members), stated), centre + drawn((rows,), true)
    return (values, outcomes) if digits is None else (values.round(digits), outcomes.round(digits))


def pools(values, outcomes):
    return np.concatenate([values, np.asarray(outcomes)[:, None]], axis=1)


# ------------------------------------------------------------------ by hand


@pytest.mark.parametrize(
    ("row", "outcome", "middle"),
    [
        ([1.0, 2.0, 3.0], 0.0, 0.125),  # below all: the first of four ranks
        ([1.0, 2.0, 3.0], 5.0, 0.875),
        ([1.0, 1.0, 2.0], 1.0, 0.375),  # one of three that tie
        ([1.0, 1.0, 1.0], 1.0, 0.5),
        ([7.0], 8.0, 0.75),
    ],
)
def test_places_by_hand(row, outcome, middle):
    found = caltest.estimate(Members([row, row]), [outcome, outcome], "bias")
    assert found == pytest.approx(0.5 - middle, abs=1e-3)  # from 200 levels


def fair_crps(members, outcome):
    size = len(members)
    between = np.abs(np.subtract.outer(members, members)).sum() / (2 * size * max(size - 1, 1))
    return np.abs(members - outcome).mean() - between


def fair_energy(points, place):
    """The energy score of the others at one of a pool, all divided by deviations in the pool."""
    points = points / points.std(axis=0)
    rest = np.delete(points, place, axis=0)
    lengths = np.linalg.norm(rest - points[place], axis=1)
    between = np.linalg.norm(rest[:, None] - rest, axis=2).sum()
    return lengths.mean() - between / (2 * len(rest) * max(len(rest) - 1, 1))


@pytest.mark.parametrize("members", [1, 2, 5])
@pytest.mark.parametrize("digits", [None, 0])
def test_crps_is_the_fair_one_less_its_mean_over_the_pool(members, digits):
    values, outcomes = ensemble(1, members, digits=digits)
    assert Members(values).met(outcomes)[0].crps(outcomes) == pytest.approx(
        [fair_crps(row, y) for row, y in zip(values, outcomes, strict=True)]
    )
    hand = 0.0
    for pool in pools(values, outcomes):
        scores = [fair_crps(np.delete(pool, k), pool[k]) for k in range(len(pool))]
        hand += (scores[-1] - np.mean(scores)) / ROWS
    assert caltest.estimate(Members(values), outcomes, "crps") == pytest.approx(hand)


@pytest.mark.parametrize("members", [1, 2, 6])
def test_the_energy_score_by_direct_sums(members):
    values, outcomes = vectors(2, members)
    weights, hand = np.linspace(0.2, 1.8, ROWS), 0.0
    for w, pool in zip(weights, pools(values, outcomes), strict=True):
        scores = [fair_energy(pool, k) for k in range(len(pool))]
        hand += w * (scores[-1] - np.mean(scores)) / weights.sum()
    found = caltest.estimate(Members(values), outcomes, "energy", weights=weights)
    assert found == pytest.approx(hand, rel=1e-9)


@pytest.mark.parametrize("members", [1, 3, 20])
def test_the_kernel_error_by_direct_sums(members):
    values, outcomes = ensemble(3, members, rows=9, digits=1)
    weights, pool = np.linspace(0.2, 1.8, 9), np.sort(pools(values, outcomes), axis=1)
    rows = Rows(Members(values).met(outcomes)[0], weights=weights)
    fitted = SKCEOfNumbers().fitted(rows)

    def alike(a, b):
        return np.exp(-(np.subtract.outer(a, b) ** 2) / (2.0 * fitted.outcome_bandwidth**2)).mean()

    hand = counted = 0.0
    for i, j in product(range(9), range(9)):
        if i != j:
            apart = np.sqrt(((pool[i] - pool[j]) ** 2).mean())
            h = alike(outcomes[i], outcomes[j]) - alike(pool[i], outcomes[j])
            h += alike(pool[i], pool[j]) - alike(outcomes[i], pool[j])
            hand += weights[i] * weights[j] * np.exp(-apart / fitted.bandwidth) * h
            counted += weights[i] * weights[j]
    found = caltest.estimate(Members(values), outcomes, "skce_uq", weights=weights)
    assert found == pytest.approx(hand / counted, abs=1e-9)


@pytest.mark.parametrize("dry", [30, 38, 40])
def test_pools_may_hold_one_number_only(dry):
    """As of rain where no member has any."""
    values, outcomes = ensemble(3)
    values[:dry], outcomes[:dry] = 0.0, 0.0
    for name in ("skce_uq", "crps", "pit_ad", "omnibus"):
        result = caltest.test(Members(values), outcomes, name, n_resamples=99, rng=0)
        assert np.isfinite(result.statistic)
        assert 0.01 <= result.pvalue <= 1.0
        assert dry < 40 or result.pvalue == 1.0


def test_ranks_of_vectors_by_hand():
    values, outcomes = vectors(4, members=6, rows=12)
    law, places = Members(values).met(outcomes)
    rows = Rows(law)
    ranks = scipy.stats.rankdata(pools(values, outcomes), axis=1)
    depth = ((7 - ranks) * (ranks - 1)).sum(axis=2)
    for lens, by in (("ranks:average", ranks.sum(axis=2)), ("ranks:band_depth", depth)):
        low, high = show(rows, lens).sample(places).labels.T
        assert low == pytest.approx((by < by[:, -1:]).mean(axis=1))
        assert high == pytest.approx((by <= by[:, -1:]).mean(axis=1))


def test_central_intervals_leave_as_many_values_on_either_side():
    law = Pool(np.arange(10.0)[None])
    ends = {level: [float(end[0]) for end in law.central(level)] for level in (0.5, 0.8, 0.81, 0.95)}
    assert ends == {0.5: [2, 7], 0.8: [1, 8], 0.81: [0, 9], 0.95: [0, 9]}


# ------------------------------------------------------------------ exactness


EVERY = ("pit_ks", "pit_kuiper", "pit_cvm", "pit_ad", "pit_chi2", "bias", "spread", "coverage", "crps")


@pytest.mark.slow
@pytest.mark.parametrize("name", [*EVERY, "skce_uq"])
def test_statistics_that_are_means_are_0_over_all_places(name):
    """Of three rows of two members, all 27 places at which outcomes may hide are as likely."""
    values, outcomes = ensemble(5, members=2, rows=3)
    pool, found = pools(values, outcomes), []
    for places in product(range(3), repeat=3):
        members = np.stack([np.delete(row, k) for row, k in zip(pool, places, strict=True)])
        found.append(caltest.estimate(Members(members), pool[np.arange(3), places], name))
    mean_0 = name in ("bias", "spread", "crps", "skce_uq")
    assert np.mean(found) == pytest.approx(0.0, abs=1e-9) if mean_0 else np.mean(found) > 0.0
    # Draws are from the same 27 values, as often as each is.
    drawn = caltest.test(Members(values), outcomes, name, n_resamples=5399, rng=0).null_distribution
    for value in np.unique(np.round(found, 9)):
        low, high = binomial_limits(5399, np.mean(np.abs(np.array(found) - value) < 1e-8))
        assert low <= np.mean(np.abs(drawn - value) < 1e-8) <= high


SETS, DRAWS = 300, 39
OF_VECTORS = [("energy", None), ("bias", "pair:0,1"), ("spread", "ranks:average")]


def rate(seed, names, data, **options):
    """How often each statistic, of data drawn with seeds from ``seed`` on, rejects at 5%."""
    counts = np.zeros(len(names))
    for k in range(SETS):
        values, outcomes = data(seed + k, **options)
        for place, (name, lens) in enumerate(names):
            given = {"lens": lens, "n_resamples": DRAWS, "rng": k}
            counts[place] += caltest.test(Members(values), outcomes, name, **given).pvalue <= 0.05
    return counts / SETS


@pytest.mark.slow
def test_exchangeable_members_are_rejected_as_often_as_stated():
    """Limits that a rate of .05 leaves once in 10 000 times; with ties values tie, never more."""
    names = [(name, None) for name in ("pit_ad", "spread", "crps", "skce_uq")]
    low, high = binomial_limits(SETS, 0.05)
    found = rate(0, names, ensemble)
    assert ((low <= found) & (found <= high)).all(), found
    assert (rate(1000, names[:3], ensemble, digits=0, members=2) <= high).all()


@pytest.mark.level
@pytest.mark.parametrize("members", [1, 2, 9, 50])
def test_levels(members):
    _, high = binomial_limits(SETS, 0.05)
    found = rate(3000, [(name, None) for name in EVERY], ensemble, members=members)
    assert (found <= high).all(), found
    found = rate(4000, OF_VECTORS, vectors, members=members, digits=1)
    assert (found <= high).all(), found


def test_wrong_members_are_found():
    narrow = [caltest.test(Members(v), y, "spread", n_resamples=99, rng=0)
              for v, y in (ensemble(k, 9, 200, scale=0.6) for k in range(10))]  # fmt: skip
    assert all(result.pvalue == 0.02 and result.statistic < 0.0 for result in narrow)
    for k in range(10):
        values, outcomes = vectors(k, 9, 200, entries=2, stated=0.0, true=0.8)
        together, alone = (
            caltest.test(Members(values), outcomes, name, lens=lens, n_resamples=99, rng=0).pvalue
            for name, lens in (("bias", "pair:0,1"), ("pit_ad", "entry:0"))
        )
        assert together == 0.02
        assert alone > 0.01  # entries alone are as stated
    values, outcomes = ensemble(0, 9, 200, scale=0.6)
    assert caltest.test(Members(values), outcomes, "skce_uq", n_resamples=99, rng=0).pvalue == 0.01


# ------------------------------------------------------------------ what changes nothing


@pytest.mark.parametrize("name", ["omnibus", "crps", "skce_uq", "energy", "pit_ks"])
def test_the_order_of_members_and_where_the_outcome_hides_change_nothing(name):
    of_vectors = name == "energy"
    values, outcomes = (vectors if of_vectors else ensemble)(6, digits=1)
    options = {"n_resamples": 99, "rng": 3}
    first = caltest.test(Members(values), outcomes, name, **options)
    turned = np.random.default_rng(0).permuted(values, axis=1) if not of_vectors else values[:, ::-1]
    again = caltest.test(Members(turned), outcomes, name, **options)
    assert (again.statistic, again.pvalue) == (first.statistic, first.pvalue)
    pool, places = pools(values, outcomes), np.arange(ROWS) % 5
    members = np.stack([np.delete(row, k, axis=0) for row, k in zip(pool, places, strict=True)])
    hidden = caltest.test(Members(members), pool[np.arange(ROWS), places], name, **options)
    assert hidden.statistic != first.statistic
    if name != "omnibus":
        assert np.array_equal(hidden.null_distribution, first.null_distribution)


@pytest.mark.parametrize("name", ["pit_ad", "crps", "skce_uq", "energy"])
def test_the_order_of_rows_changes_no_statistic(name):
    values, outcomes = (vectors if name == "energy" else ensemble)(7)
    order = np.random.default_rng(1).permutation(ROWS)
    one, other = (
        caltest.estimate(Members(values[rows]), outcomes[rows], name) for rows in (slice(None), order)
    )
    assert other == pytest.approx(one, rel=1e-9)


def test_entries_alone_are_the_same_numbers():
    values, outcomes = vectors(8)
    whole = Members(values, names=["a", "b", "c"])
    for name in ("bias", "pit_ad"):
        seen = caltest.estimate(whole, outcomes, name, lens="entry:b")
        assert seen == pytest.approx(caltest.estimate(Members(values[:, :, 1]), outcomes[:, 1], name))


# ------------------------------------------------------------------ pictures


def drawn(values, outcomes, **options):
    display = PITDisplay.from_predictions(Members(values), outcomes, rng=0, n_resamples=99, **options)
    plt.close(display.figure_)
    return display


@pytest.mark.parametrize(("members", "bins"), [(1, 2), (9, 10), (20, 21), (59, 20), (100, 10)])
def test_a_rank_histogram_has_all_ranks_or_a_divisor_of_them(members, bins):
    values, outcomes = ensemble(9, members, rows=200)
    display = drawn(values, outcomes, kind="histogram")
    assert len(display.x) == bins
    assert display.members == members
    assert display.values.sum() == pytest.approx(bins)
    if (members + 1) % bins == 0:
        ranks = (values < outcomes[:, None]).sum(axis=1) * bins // (members + 1)
        assert display.values == pytest.approx(np.bincount(ranks, minlength=bins) * bins / 200)


def test_ties_share_their_ranks():
    display = drawn([[0.0, 0.0, 1.0], [5.0, 6.0, 7.0]], [0.0, 9.0], kind="histogram")
    assert display.values == pytest.approx([2 / 3, 2 / 3, 2 / 3, 2.0])


def test_pictures_of_an_entry_say_so():
    values, outcomes = vectors(10, rows=200, stated=0.0, true=0.9)
    display = drawn(values, outcomes, kind="histogram", lens="entry:1")
    same = drawn(values[:, :, 1], outcomes[:, 1], kind="histogram")
    assert display.values == pytest.approx(same.values)
    title = display.ax_.get_title(loc="left")
    assert title.startswith("Rank histogram, entry:1: inside its band, n = 200\nmany at both ends")
    pair = drawn(values, outcomes, lens="pair:0,1", kind="histogram")
    assert pair.outside.any()
    assert pair.ax_.get_title(loc="left") == "Rank histogram, pair:0,1: outside its band, n = 200"
    difference = drawn(values[:, :, 1], outcomes[:, 1])
    assert difference.ax_.get_title(loc="left").startswith("ECDF difference of ranks: inside")
    assert "members are too low" in difference.ax_.get_legend().get_texts()[1].get_text()


@pytest.mark.level
@pytest.mark.parametrize("kind", ["difference", "histogram", "coverage"])
def test_bands_hold_everything_as_often_as_stated(kind):
    outside = 0
    for k in range(200):
        values, outcomes = ensemble(k, 20, digits=1)
        given = {"kind": kind, "n_resamples": 39, "rng": k}
        display = PITDisplay.from_predictions(Members(values), outcomes, **given)
        outside += display.outside.any()
        plt.close(display.figure_)
    low, high = binomial_limits(200, 0.05)
    assert low <= outside / 200 <= high


# ------------------------------------------------------------------ comparison


def compared(models, outcomes, **options):
    return caltest.compare(models, outcomes, **options)


def test_comparisons_are_of_members_not_of_their_pools():
    values, outcomes = ensemble(11, 9, rows=400)
    models = {
        "all": Members(values),
        "three": Members(values[:, :3]),
        "law": Normal(values.mean(axis=1), sd=1.0),
    }
    found = compared(models, outcomes, lens="above:0.3", statistic="citl")
    for error, size in zip(found.errors, (9, 3), strict=False):
        members = values[:, :size]
        assert error.predicted == pytest.approx((members > 0.3).mean())
        assert error.observed == (outcomes > 0.3).mean()
        hand = [fair_crps(row, y) for row, y in zip(members, outcomes, strict=True)]
        assert error.crps == pytest.approx(np.mean(hand))
        assert error.units.predicted == pytest.approx(members.mean())
    gap = found.gap("three", "all")
    assert gap.mean == pytest.approx([(values[:, :3] > 0.3).mean() - (values > 0.3).mean()] * 3)


def test_quantile_scores_beside_quantile_forecasts_leave_the_outcome_out():
    values, outcomes = ensemble(12, 9, rows=400)
    quantiles = Quantiles([0.1, 0.5, 0.9], np.tile([-1.0, 0.0, 1.0], (400, 1)))
    found = compared({"members": Members(values), "quantiles": quantiles}, outcomes)
    ordered, hand = np.sort(values, axis=1), 0.0
    for level, place in ((0.1, 0), (0.5, 4), (0.9, 8)):
        over = outcomes - ordered[:, place]
        hand += 2.0 * np.where(over > 0.0, level, level - 1.0) @ over / 1200
    assert found.errors[0].crps == pytest.approx(hand)


@pytest.mark.parametrize(
    ("members", "lens"),
    [(9, "interval:0.8"), (8, "interval:0.5"), (3, "interval:0.5"), (2, "quantile:0.5")],
)
def test_few_members_are_compared_by_an_interval_that_they_state(members, lens):
    values, outcomes = ensemble(13, 20, rows=200)
    models = {"few": Members(values[:, :members]), "many": Members(values)}
    found = compared(models, outcomes)
    assert found.probability == lens
    assert any(f"L/(L + 1) of an error, and there are models of {members}" in x for x in found.warnings)
    assert not compared({"a": models["many"], "b": Members(-values)}, outcomes).warnings


def test_a_narrow_ensemble_is_further_off():
    values, outcomes = ensemble(14, 20, rows=800)
    middle = values.mean(axis=1, keepdims=True)
    models = {"good": Members(values), "narrow": Members(middle + 0.5 * (values - middle))}
    found = compared(models, outcomes)
    assert found.gap("narrow", "good").absolute[0] > 0.0
    assert found.errors[0].low <= 0.0 <= found.errors[0].high
    assert found.errors[1].low > 0.0


def test_commas_in_brackets_are_part_of_a_name():
    values, truths = vectors(16)
    named = Members(values, names=["beta[1,1]", "beta[1,2]", "u/v"])
    for lens, plain in (("pair:beta[1,1],beta[1,2]", "pair:0,1"), ("entry:u/v", "entry:2")):
        one = caltest.test(named, truths, "bias", lens=lens, n_resamples=99, rng=0)
        other = caltest.test(Members(values), truths, "bias", lens=plain, n_resamples=99, rng=0)
        assert one.pvalue == other.pvalue


# ------------------------------------------------------------------ refusals

VALUES, OUTCOMES = ensemble(15)
VECTORS, TRUTHS = vectors(15)
MISSING = np.where(np.arange(4) == 2, np.nan, VALUES)
WRONG = {
    "one row of numbers": (lambda: Members(VALUES[0]), r"members has shape \(4,\); give"),
    "no members": (lambda: Members(np.empty((5, 0))), r"members has shape \(5, 0\)"),
    "no member": (lambda: Members(MISSING[2:] * [[1], *[[np.nan]] * 37]), "row 1 .* has no member"),
    "missing in vectors": (lambda: Members(np.where(VECTORS > 1, np.nan, VECTORS)), "missing entries"),
    "names": (lambda: Members(VECTORS, names=["a", "b"]), "names holds .* for 3 entries; give each"),
    "names of numbers": (lambda: Members(VALUES, names=["a"]), "members are plain numbers; leave"),
    "a comma in a name": (lambda: Members(VECTORS, names=["a,b", "c", "d"]), "names holds 'a,b'"),
    "a lens in a name": (lambda: Members(VECTORS, names=["a/pit:2", "c", "d"]), "'a/pit:2', which"),
    "dates": (lambda: Members(VALUES.astype("datetime64[D]")), "are dates or times; give numbers"),
    "nothing": (lambda: Members(None), "members could not be read: this is None; give numbers"),
    "names twice": (lambda: Members(VECTORS, names=["a", "b", "a"]), "for 3 entries"),
    "too few outcomes": (lambda: caltest.test(Members(VALUES), OUTCOMES[1:], "pit_ad"),
        r"the outcomes have shape \(39,\)"),
    "numbers for vectors": (lambda: caltest.test(Members(VECTORS), OUTCOMES, "energy"),
        r"the outcomes have shape \(40,\)"),
    "without outcomes": (lambda: Members(VALUES).cdf(OUTCOMES), "give the outcomes too"),
    "a density": (lambda: caltest.test(Members(VALUES), OUTCOMES, "ecd"), "state no density"),
    "scores of vectors": (lambda: caltest.test(Members(VALUES), OUTCOMES, "energy"),
        "'energy' is for members that are vectors, and these are members of ensembles"),
    "kernels of vectors": (lambda: caltest.test(Members(VECTORS), TRUTHS, "skce_uq"),
        "these are members that are vectors; leave the statistic out, or give a lens of one entry"),
    "ranks of vectors": (lambda: caltest.test(Members(VECTORS), TRUTHS, "pit_ad"),
        "the outcomes are vectors, which have no distribution function"),
    "no such entry": (lambda: caltest.test(Members(VECTORS), TRUTHS, "pit_ad", lens="entry:x"),
        "there is no entry 'x'; choices: 0, 1, 2"),
    "entries of numbers": (lambda: caltest.test(Members(VALUES), OUTCOMES, "pit_ad", lens="entry:0"),
        "the lens 'entry:0/distribution' is for members that are vectors"),
    "a picture of vectors": (lambda: PITDisplay.from_predictions(Members(VECTORS), TRUTHS),
        "give a lens of one entry, such as 'entry:0'"),
    "a picture of an event": (
        lambda: PITDisplay.from_predictions(Members(VALUES), OUTCOMES, lens="interval:0.9"),
        "through the lens 'interval:0.9' there is an event",
    ),
    "a comparison of vectors": (
        lambda: compared({"a": Members(VECTORS), "b": Members(VECTORS)}, TRUTHS),
        "model 'a': these are about vectors of 3 entries; give numbers",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_is_answered_in_a_sentence(case):
    sentence(*WRONG[case])


@pytest.mark.level
def test_many_simulations_of_few_draws_tell_more():
    """Than few simulations of many draws, as docs/posteriors.md says; draws are a tenth too close."""
    found = {}
    for simulations, draws in ((1000, 20), (100, 1000)):
        rejected = 0
        for seed in range(40):
            rng = np.random.default_rng([3, simulations, seed])
            law = Members(0.9 * rng.normal(size=(simulations, draws)))
            result = caltest.test(law, rng.normal(size=simulations), n_resamples=99, rng=seed)
            rejected += result.pvalue <= 0.05
        found[draws] = rejected / 40
    assert found[20] > 0.6 > 0.4 > found[1000]
