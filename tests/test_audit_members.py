"""Audits of members of ensembles and of posterior draws: by entry, by pair, and all at once."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support import binomial_limits, command

import caltest
from caltest import InputError, report
from caltest.predictive import Members

QUICK = {"n_resamples": 199, "rng": 0}


def ensemble(n=600, size=20, spread=1.0, seed=0):
    """Members about a centre a row, and outcomes that are as many times as spread."""
    rng = np.random.default_rng(seed)
    centre = rng.normal(size=(n, 1))
    return Members(centre + rng.normal(size=(n, size))), rng.normal(centre[:, 0], spread)


def posterior(n=400, size=25, names=("mu", "tau", "rho"), seed=0):
    """Parameters and draws of a posterior that is right."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, len(names))), rng.normal(size=(size, n, len(names)))


@pytest.mark.slow
def test_what_is_looked_at_of_numbers():
    found = caltest.audit(*ensemble(), **QUICK)
    assert found.groups == ("predicted level", "predicted spread")
    assert found.lenses == ("distribution", "interval:0.5", "interval:0.8", "quantile:0.5")
    assert [each.what for each in found.skipped][:1] == ["the lens 'interval:0.95'"]
    assert found.skipped[0].reason == "20 members cannot state a tail of 2.5%"


def test_predicted_shares_that_members_state_are_explained_where_they_are_printed():
    found = caltest.audit(*ensemble(n=200, size=10), lenses="interval:0.8", n_resamples=99, rng=0)
    text = " ".join(str(found).split())
    assert "81.8%" in text
    assert "Predicted: what so many members can state; few cannot state every level." in text
    below = caltest.audit(*ensemble(n=200, size=10), lenses="below:0", n_resamples=99, rng=0)
    assert "so many members" not in str(below)


def test_errors_are_those_of_the_members_and_not_of_their_pool():
    """Of "below:0" the predicted mean is the share of members below 0."""
    members, outcomes = ensemble(n=300, size=4)
    one = {"min_rows": 200, **QUICK}
    view = caltest.audit(members, outcomes, lenses="below:0", **one).views[0]
    assert view.predicted == pytest.approx((members.values < 0.0).mean())
    assert view.observed == pytest.approx((outcomes < 0.0).mean())
    share = (np.column_stack([members.values, outcomes]) < 0.0).mean(axis=1)
    pooled = caltest.audit(share, outcomes < 0.0, **one).views[0]
    assert (view.low, view.high) == pytest.approx((1.25 * pooled.low, 1.25 * pooled.high))


@pytest.mark.parametrize(
    ("size", "lens", "stated"), [(1, "quantile:0.5", 1 / 2), (20, "interval:0.8", 17 / 21)]
)
def test_what_ranks_state_does_not_move_with_outcomes(size, lens, stated):
    """The error is what is stated less what was observed, in an audit and in a comparison."""
    rng = np.random.default_rng(4)
    members = Members(rng.normal(size=(300, size)))
    outcomes = rng.normal(0.6, 2.0, size=300)
    view = caltest.audit(members, outcomes, lenses=lens, **QUICK).views[0]
    for of in (view, caltest.compare({"a": members, "b": members}, outcomes, lens=lens).errors[0]):
        assert of.predicted == pytest.approx(stated, abs=1e-12)
        assert of.low < stated - of.observed < of.high


@pytest.mark.slow
def test_words_of_spread():
    found = caltest.audit(*ensemble(n=1500, spread=1.5), materiality=0.02, **QUICK)
    assert found.verdict == "material"
    assert found.headline.startswith("The predicted 80% interval is too narrow: about ")
    assert found.units.predicted is not None


@pytest.mark.level
def test_groups_by_the_mean_are_a_trap_and_strata_of_the_pool_are_not():
    """Of calibrated ensembles of nine, the top tenth by the members' mean is rejected always."""
    naive, strata = 0, 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        members, outcomes = Members(rng.normal(size=(1000, 9))), rng.normal(size=1000)
        top = np.argsort(members.values.mean(axis=1))[-100:]
        naive += caltest.test(members.take(top), outcomes[top], "bias", rng=seed).pvalue <= 0.05
        top = np.argsort(np.column_stack([members.values, outcomes]).mean(axis=1))[-100:]
        strata += caltest.test(members.take(top), outcomes[top], "bias", rng=seed).pvalue <= 0.05
    assert naive >= 36
    assert strata / 40 <= binomial_limits(40, 0.05)[1]


def rejected(times, n, size):
    found = 0
    for seed in range(times):
        truth, draws = posterior(n, size, ("a", "b"), seed)
        found += caltest.sbc(truth, draws, n_resamples=99, rng=seed).rejected
    return found / times


@pytest.mark.slow
def test_sbc_is_exact():
    low, high = binomial_limits(40, 0.05)
    assert low <= rejected(40, 60, 9) <= high


@pytest.mark.level
def test_sbc_is_exact_of_few_and_of_many_draws():
    for size in (3, 9, 60):
        low, high = binomial_limits(200, 0.05)
        assert low <= rejected(200, 60, size) <= high


@pytest.mark.slow
def test_a_wrong_parameter_is_named():
    truth, draws = posterior()
    truth[:, 1] *= 1.5
    found = caltest.sbc(truth, draws, names=["mu", "tau", "rho"], **QUICK)
    assert found.headline.startswith("The predicted 80% interval of tau is too narrow")
    assert found.story.subject.of.lens == "entry:tau/interval:0.8"
    assert "entry:*/distribution" in found.summary()
    page = report.to_html(found)
    assert "80% interval of tau" in page
    tau = found.posterior[0]
    assert (tau.names, tau.found, tau.spread, tau.way) == (("tau",), True, "over", None)
    assert tau.factor[0] < 1.5 < tau.factor[2]
    assert "◆ tau" in found.summary()
    assert "too narrow by a factor of 1." in page


def test_a_wrong_correlation_is_named():
    truth, draws = posterior()
    rng = np.random.default_rng(5)
    truth[:, :2] = rng.multivariate_normal([0.0, 0.0], [[1.0, 0.6], [0.6, 1.0]], size=400)
    found = caltest.sbc(truth, draws, names=["mu", "tau", "rho"], **QUICK)
    said = "The predicted correlations of mu and tau are wrong; they are too low: stated "
    assert found.headline.startswith(said)
    pair = found.posterior[0]
    assert pair.names == ("mu", "tau")
    assert pair.stated == pytest.approx(0.0, abs=0.02)
    assert pair.observed[0] < 0.6 < pair.observed[2]
    assert "mu and tau do not go together as their draws do" in report.to_html(found)
    assert re.search(r"◆ mu and tau +correlation: stated −?0\.0", found.summary())


@pytest.mark.slow
@pytest.mark.parametrize(("scale", "shift", "size"), [(1.0, 0.0, 8), (0.6, 0.0, 40), (1.4, 0.3, 40)])
def test_sizes_of_a_posterior_are_those_that_were_planted(scale, shift, size):
    """Draws are ``scale`` times as wide as they should be, and ``shift`` deviations too high."""
    rng = np.random.default_rng(1)
    spread = rng.uniform(0.5, 5.0, 3000)
    draws = spread * scale * (rng.normal(size=(size, 3000)) + shift)
    (of,) = caltest.sbc({"mu": spread * rng.normal(size=3000)}, {"mu": draws}, **QUICK).posterior
    assert of.factor[0] < 1.0 / scale < of.factor[2]
    assert of.shift[0] < shift < of.shift[2] or size < 10
    assert of.spread == {1.0: None, 0.6: "over", 1.4: "under"}[scale]
    assert of.way == ("over" if shift else None)


@pytest.mark.slow
@pytest.mark.parametrize("size", [10, 100])
def test_few_draws_do_not_weaken_a_correlation(size):
    """Means of ten draws are off by themselves: less that, −.8 is between the limits."""
    rng = np.random.default_rng(2)
    truth = rng.multivariate_normal([0.0, 0.0], [[1.0, -0.8], [-0.8, 1.0]], size=2000)
    pair = caltest.sbc(truth, rng.normal(size=(size, 2000, 2)), **QUICK).posterior[0]
    assert pair.names == ("0", "1")
    assert pair.observed[0] < -0.8 < pair.observed[2]
    assert pair.observed[2] - pair.observed[0] < 0.06


@pytest.mark.slow
def test_the_command_reads_tables_and_arrays(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    truth, draws = posterior(n=200)
    truth[:, 1] *= 1.8
    names = ["mu", "tau", "rho"]
    table = {f"{name}_{k}": draws[k, :, j] for j, name in enumerate(names) for k in range(len(draws))}
    pd.DataFrame(dict(zip(names, truth.T, strict=True)) | table).to_parquet("draws.parquet")
    np.savez("draws.npz", parameters=truth, draws=draws)
    np.save("parameters.npy", truth)
    np.save("draws.npy", draws)
    expected = caltest.sbc(truth, draws, names=names, **QUICK).posterior
    how = ("--names", "mu,tau,rho", "--resamples", 199, "--seed", 0, "--json", "found.json")
    for files in (["draws.parquet"], ["draws.npz"], ["parameters.npy", "draws.npy"]):
        done = command("sbc", *files, *how)
        assert done.exit_code == 1, done.output
        assert "◆ tau" in done.stdout
        found = json.loads(Path("found.json").read_text())["posterior"]
        assert [each["adjusted"] for each in found] == [each.adjusted for each in expected]
    assert "give one table with --names" in command("sbc", "draws.parquet").stderr
    np.savez("other.npz", parameters=truth)
    assert "there is no array 'draws'" in command("sbc", "other.npz").stderr


def test_what_else_is_wrong_is_said():
    truth, draws = posterior(n=600)
    rng = np.random.default_rng(5)
    truth[:, :2] = rng.multivariate_normal([0.0, 0.0], [[1.0, 0.7], [0.7, 1.0]], size=600)
    truth[:, 2] *= 1.6
    found = caltest.sbc(truth, draws, names=["mu", "tau", "rho"], **QUICK)
    assert "interval of rho is too narrow" in found.headline
    assert "Also found: correlations of mu and tau are too low." in " ".join(found.summary().split())


def test_parameters_by_name():
    truth, draws = posterior()
    named = dict(zip(("mu", "tau", "rho"), truth.T, strict=True))
    drawn = {name: draws[:, :, k] for k, name in enumerate(named)}
    by_array = caltest.sbc(truth, draws, names=list(named), **QUICK)
    by_dict = caltest.sbc(named, dict(reversed(drawn.items())), **QUICK)
    by_frame = caltest.sbc(pd.DataFrame(named), drawn, **QUICK)
    assert by_array.pvalue == by_dict.pvalue == by_frame.pvalue
    assert by_array.lenses == by_dict.lenses == by_frame.lenses
    assert by_dict.call == "caltest.sbc(parameters, draws, n_resamples=199, rng=0)"


def test_quantities_see_what_parameters_do_not():
    """Draws of the prior are calibrated parameter by parameter: the likelihood of the data is not."""
    rng = np.random.default_rng(3)
    mu = rng.normal(size=500)
    data, draws = rng.normal(mu), rng.normal(size=(30, 500))
    assert not caltest.sbc(mu, draws, **QUICK).rejected
    likelihood = -((data - mu) ** 2), -((data - draws) ** 2)
    found = caltest.sbc({"mu": mu}, {"mu": draws}, quantities={"log likelihood": likelihood}, **QUICK)
    assert found.story.subject.of.lens.startswith("entry:log likelihood/")
    by_function = caltest.sbc(
        {"mu": mu},
        {"mu": draws},
        quantities={"log likelihood": lambda p: -((data - p["mu"]) ** 2)},
        **QUICK,
    )
    assert by_function.pvalue == found.pvalue


def test_chains_that_were_not_thinned_are_warned_of():
    truth, draws = posterior()
    for k in range(1, len(draws)):
        draws[k] = 0.8 * draws[k - 1] + 0.6 * draws[k]
    found = caltest.sbc(truth, draws, **QUICK)
    notes = [each for each in found.warnings if "Neighbouring draws" in each]
    assert len(notes) == 3
    assert "(autocorrelation 0.7" in notes[0] or "(autocorrelation 0.6" in notes[0]


def test_few_members_have_no_interval_that_is_none():
    """Of nine members the interval of 50% would be one of 60%."""
    found = caltest.audit(*ensemble(size=9), **QUICK)
    assert found.lenses == ("distribution", "interval:0.8", "quantile:0.5")
    assert "9 members cannot state 50%" in [each.reason for each in found.skipped]


def test_columns_of_outcomes_are_those_of_the_entries():
    rng = np.random.default_rng(2)
    members = Members(rng.normal(size=(60, 9, 2)) * [1, 10], names=["a", "b"])
    outcomes = pd.DataFrame(rng.normal(size=(60, 2)) * [1, 10], columns=["a", "b"])
    found = caltest.test(members, outcomes, n_resamples=99, rng=0)
    assert caltest.test(members, outcomes[["b", "a"]], n_resamples=99, rng=0).pvalue == found.pvalue


@pytest.mark.parametrize("scale", [1e160, 1e-170])
def test_scales_change_nothing(scale):
    rng = np.random.default_rng(2)
    values, outcomes = rng.normal(size=(60, 9, 2)), 3.0 * rng.normal(size=(60, 2))
    found = [caltest.test(Members(values * k), outcomes * k, "energy", rng=0) for k in (1.0, scale)]
    assert found[0].pvalue == found[1].pvalue == 0.002


def test_consistency_resampling_is_of_classes():
    members, outcomes = ensemble(n=60)
    with pytest.raises(InputError, match="'consistency'"):
        caltest.test(members, outcomes, "bias", null="consistency", rng=0)


def test_workers_and_order_change_nothing():
    truth, draws = posterior(n=200)
    found = caltest.sbc(truth, draws, **QUICK)
    assert caltest.sbc(truth, draws, n_jobs=2, **QUICK).pvalue == found.pvalue
    again = caltest.sbc(truth, draws[np.random.default_rng(0).permutation(len(draws))], **QUICK)
    assert [each.pvalue for each in again.checks] == [each.pvalue for each in found.checks]


@pytest.mark.slow
def test_vectors_in_clusters_and_with_weights():
    truth, draws = posterior(n=300)
    clusters, weights = np.arange(300) // 2, np.linspace(0.5, 1.5, 300)
    assert caltest.sbc(truth, draws, clusters=clusters, **QUICK).clusters == 150
    assert caltest.sbc(truth, draws, weights=weights, **QUICK).effective_n < 300


@pytest.mark.parametrize(
    ("parameters", "draws", "more", "said"),
    [
        (np.zeros((5, 2)), np.zeros((3, 5, 3)), {}, r"has shape \(5, 2\), draws \(3, 5, 3\)"),
        ({"a": np.zeros(5)}, {"b": np.zeros((3, 5))}, {}, "columns 'b', and parameters are called 'a'"),
        ({"a": np.zeros(5), "b": np.zeros(4)}, np.zeros((3, 5, 2)), {}, "have the shapes|have shapes"),
        (np.zeros((5, 2)), np.zeros((3, 5, 2)), {"names": ["a", "a"]}, "'a' is the name of two"),
        (
            {"mu": np.zeros(5)},
            {"mu": np.zeros((3, 5))},
            {"quantities": {"mu": (np.zeros(5), np.zeros((3, 5)))}},
            "'mu' is the name of two parameters or quantities",
        ),
        (np.zeros((5, 1)), np.full((3, 5, 1), np.nan), {}, "draws holds nan"),
        (
            np.zeros((5, 1)),
            np.zeros((3, 5, 1)),
            {"quantities": {"q": lambda p: 3.0}},
            "the quantity 'q'",
        ),
    ],
)
def test_wrong_input(parameters, draws, more, said):
    with pytest.raises(InputError, match=said):
        caltest.sbc(parameters, draws, **more)


@pytest.mark.parametrize("size", [4, 10])
def test_few_members_are_told_how_much_farther_they_would_have_to_lie(size):
    rng = np.random.default_rng(size)
    centre, outcomes = rng.normal(size=(2000, 1)), rng.normal(size=2000)
    narrow = Members(centre + 0.5 * rng.normal(size=(2000, size)))
    found = caltest.audit(narrow, centre[:, 0] + outcomes, n_resamples=199, rng=0)
    assert found.units.factor is None
    # Squared distances from the members' mean: of outcomes, and of one more member.
    off, stated = 1.0 + 0.25 / size, 0.25 * (1.0 + 1.0 / size)
    assert found.units.spread == pytest.approx(np.sqrt(off / stated), rel=0.04)
    said = f"members would have to be spread about {found.units.spread:.2f} times as far"
    assert said in " ".join(str(found).split())
