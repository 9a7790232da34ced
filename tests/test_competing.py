"""Competing risks: incidence by cause, audited by cause and horizon, with follow-up known or not."""

import json

import numpy as np
import pandas as pd
import pytest
from statsmodels.duration.survfunc import CumIncidenceRight
from support import command

import caltest
from caltest.exceptions import InputError

TIMES = np.linspace(0.1, 3.0, 30)
NAMES = np.array([0, "relapse", "death"], dtype=object)
LENSES = ["cause:relapse/until:1", "cause:death/until:1"]


def incidence(one, other):
    return (one / (one + other))[:, None] * -np.expm1(-np.outer(one + other, TIMES))


def data(seed, n=400, factor=1.0, censored=1.5, **options):
    """Predictions, and outcomes in which relapses come so many times as often."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    one, other = 0.5 * np.exp(0.7 * x), 0.4 * np.exp(-0.4 * x)
    stated = {"relapse": incidence(one, other), "death": incidence(other, one)}
    end = rng.exponential(censored, n) if not options else np.full(n, options["follow_up"])
    time = rng.exponential(1.0 / (factor * one + other))
    cause = np.where(rng.random(n) < factor * one / (factor * one + other), 1, 2)
    outcomes = np.minimum(time, end), NAMES[np.where(time <= end, cause, 0)]
    return caltest.predictive.Survival(incidence=stated, times=TIMES, **options), outcomes, x


@pytest.mark.slow
def test_observed_are_aalen_and_johansens_estimates():
    predicted, outcomes, _ = data(0)
    found = caltest.audit(predicted, outcomes, lenses=LENSES, n_resamples=99).times
    codes = np.array([list(NAMES).index(each) for each in outcomes[1]])
    with np.errstate(divide="ignore", invalid="ignore"):
        known = CumIncidenceRight(outcomes[0], codes)
    cause = ["relapse", "death"].index(found.cause)
    places = np.searchsorted(known.times, found.times, "right") - 1
    for place, value in zip(places, found.kaplan_meier, strict=True):
        assert value is None or value == pytest.approx(known.cinc[cause][place], abs=1e-12)
    assert found.events[-1] == (codes == cause + 1)[outcomes[0] <= TIMES[-1]].sum()


def test_one_of_two_causes_by_hand():
    # Of five rows: a relapse, a death, a censored row, a relapse, a row followed longer.
    predicted = caltest.predictive.Survival(
        incidence={1.0: [[0.2, 0.4]] * 5, 2.0: [[0.1, 0.2]] * 5}, times=[1.0, 2.0], interpolation="step"
    )
    outcomes = [1.0, 1.0, 1.5, 2.0, 2.5], [1, 2, 0, 1, 0]
    expected = (5 * 0.2 + 2 * 0.2 / 0.7) / 5  # hazards 0.2 and, of the two left at 2, 0.2 / 0.7
    events = caltest.statistics.Events(cause=1)
    assert caltest.estimate(predicted, outcomes, events) == pytest.approx(2 / 5 - expected)
    assert predicted.causes == ("1", "2")
    other = caltest.statistics.Events(cause="2")
    expected = (5 * 0.1 + 2 * 0.1 / 0.7) / 5
    assert caltest.estimate(predicted, outcomes, other) == pytest.approx(1 / 5 - expected)


def test_hazards_of_causes_add_up_and_are_those_of_the_rates():
    predicted, outcomes, x = data(1)
    one, _ = caltest.statistics.Events(cause="relapse"), caltest.statistics.Events(cause="death")
    parts = [
        caltest.estimate(predicted, outcomes, caltest.statistics.Events(cause=c)) for c in NAMES[1:]
    ]
    assert sum(parts) == pytest.approx(caltest.estimate(predicted, outcomes, "events"))
    rate = 0.5 * np.exp(0.7 * x)
    ended, came = np.minimum(outcomes[0], 3.0), (outcomes[1] == "relapse") & (outcomes[0] <= 3.0)
    assert caltest.estimate(predicted, outcomes, one) == pytest.approx(
        np.mean(came - rate * ended), abs=2e-3
    )


@pytest.mark.slow
@pytest.mark.parametrize("follow_up", [None, 2.0])
def test_what_is_wrong_of_one_cause_is_found_there(follow_up):
    options = {} if follow_up is None else {"follow_up": follow_up}
    predicted, outcomes, x = data(2, 1500, factor=1.8, **options)
    how = {"lenses": LENSES, "groups": {"high": x > 0}, "n_resamples": 199, "time_unit": "years"}
    found = caltest.audit(predicted, outcomes, **how, rng=0)
    assert found.rejected
    assert found.worst.lens == LENSES[0]
    assert "1-year risk of relapse" in found.headline
    assert "too low" in found.headline
    assert found.worst.event == "the event 'relapse' comes by 1 year"
    whole = {view.lens: view for view in found.views if view.group is None}
    assert whole[LENSES[0]].high < 0.0 < whole[LENSES[1]].error  # fewer live to die


def test_draws_of_a_known_follow_up_have_the_stated_chances():
    predicted, outcomes, _ = data(3, 50, follow_up=2.0)
    law = predicted.met(outcomes)[0]
    drawn = law.draw(np.random.default_rng(0), 4000)
    for cause in ("relapse", "death"):
        one = law.of_cause(cause)
        came = (one.until(drawn, 1.0)[1] == 1).mean(axis=0)
        assert came == pytest.approx(one.risk(1.0), abs=0.04)
    completed = data(3, 50)[0].met(outcomes)[0]
    assert len({each.tobytes() for each in (completed.completed(0), completed.completed(1))}) == 2


@pytest.mark.slow
def test_one_cause_alone_needs_follow_up_and_counts_other_events_as_followed():
    predicted, outcomes, x = data(4, 2000, follow_up=2.0)
    both = caltest.audit(predicted, outcomes, lenses=LENSES[:1], n_resamples=99, rng=0)
    rate = 0.5 * np.exp(0.7 * x), 0.4 * np.exp(-0.4 * x)
    alone = {"relapse": incidence(*rate)}
    one = caltest.predictive.Survival(incidence=alone, times=TIMES, follow_up=2.0)
    found = caltest.audit(one, outcomes, lenses=LENSES[:1], n_resamples=99, rng=0)
    assert found.views[0].observed == both.views[0].observed
    assert abs(found.views[0].error) < 0.03
    assert any("are of other causes" in each for each in found.warnings)
    with pytest.raises(InputError, match="follow_up"):
        caltest.predictive.Survival(incidence=alone, times=TIMES)


@pytest.mark.parametrize(
    "how", [{}, {"clusters": np.arange(200) // 2}, {"weights": np.arange(200) % 2 + 1.0}]
)
def test_risks_of_causes_sum_to_one_at_most_without_strata(how):
    rng, rates = np.random.default_rng(0), np.ones(200)  # predictions that all rows share
    stated = {"relapse": incidence(rates, rates), "death": incidence(rates, rates)}
    end, time = rng.uniform(2.0, 4.0, 200), rng.exponential(0.25, 200)
    seen = (
        np.minimum(time, end),
        np.where(time <= end, np.where(rng.random(200) < 0.5, *NAMES[1:]), "0"),
    )
    lenses = [f"cause:{name}/until:1.5" for name in stated]
    found = caltest.audit(
        caltest.predictive.Survival(incidence=stated, times=TIMES),
        seen, lenses=lenses, materiality=0.08, n_resamples=39, alpha=0.1, rng=0, **how,
    )  # fmt: skip
    came = [(seen[1] == name) & (seen[0] <= 1.5) for name in stated]  # nobody is censored before
    by_hand = [np.average(each, weights=how.get("weights")) for each in came]
    assert [view.observed for view in found.views] == pytest.approx(by_hand, abs=1e-9)
    assert sum(view.observed for view in found.views) <= 1.0 + 1e-9
    assert all(view.low < view.error < view.high for view in found.views)
    assert found.verdict != "material"


@pytest.mark.parametrize("clusters", [None, np.arange(200) // 2])
def test_events_of_a_stated_chance_of_0_are_found(clusters):
    time, none = np.random.default_rng(0).exponential(size=200), np.zeros((200, 30))
    certain = incidence(np.ones(200), np.zeros(200))
    both = caltest.predictive.Survival(incidence={"relapse": certain, "death": none}, times=TIMES)
    half = np.where(np.arange(200) % 4 < 2, *NAMES[1:])
    how = {"materiality": 0.05, "clusters": clusters, "n_resamples": 39, "alpha": 0.1}
    for predicted, cause, came in (
        (caltest.predictive.Survival(1.0 - none, TIMES), np.ones(200), 1.0),
        (both, half, half == "death"),
    ):
        lens = "until:1" if predicted is not both else LENSES[1]
        found = caltest.audit(predicted, (time, cause), lenses=lens, **how, rng=0)
        (view,) = found.views
        assert view.predicted == 0.0
        assert view.observed == pytest.approx(np.mean((time <= 1.0) * came))
        assert view.high < -0.05
        assert found.impossible == np.sum((time <= 3.0) * came)
        assert found.verdict == "material"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"incidence": {"a": [[0.1, 0.2]], 0: [[0.1, 0.2]]}}, "0 is censored"),
        ({"incidence": {"a": [[0.1, 0.7]], "b": [[0.1, 0.5]]}}, "all incidence is 1.2 in row 0"),
        (
            {"incidence": {"a": [[0.2, 0.1]], "b": [[0.1, 0.5]]}},
            "'a' falls in row 0 .*, from 0.2 to 0.1; .* do not decrease",
        ),
        ({"incidence": {"a": [[0.1, 0.2]] * 2, "b": [[0.1, 0.5]]}}, "other rows or times"),
        (
            {"incidence": {1: [[0.1, 0.2]], "1": [[0.1, 0.2]]}},
            "is of 1, 1; give that of each cause once",
        ),
        ({"incidence": {"a": [[0.1, 0.2]], "a ": [[0.1, 0.2]]}}, "is of a, a; give"),
        ({"incidence": [[0.1, 0.2]]}, "give that of each cause"),
        ({"survival": [[0.5, 0.2]]}, "not 2"),
    ],
)
def test_wrong_incidence_is_named(change, message):
    right = {"incidence": {"a": [[0.1, 0.2]], "b": [[0.1, 0.5]]}, "times": [1.0, 2.0]}
    with pytest.raises(InputError, match=message):
        caltest.predictive.Survival(**(right | change))


def test_wrong_causes_are_named():
    predicted, (time, cause), _ = data(5, 60)
    with pytest.raises(InputError, match="none of relapse, death"):
        caltest.audit(predicted, (time, np.where(cause == "death", "stroke", cause)))
    with pytest.raises(InputError, match="event holds nan"):
        caltest.audit(predicted, (time, np.where(cause == "death", None, cause)))
    with pytest.raises(InputError, match="such as 'until:365'"):
        caltest.compare({"a": predicted, "b": predicted}, (time, cause), lens=LENSES[0])
    with pytest.raises(InputError, match="did you mean 'relapse'"):
        caltest.audit(predicted, (time, cause), lenses=["cause:relaps/until:1"])
    with pytest.raises(
        InputError, match="'cause:relapse' has no horizon; give 'cause:relapse/until:TIME'"
    ):
        caltest.audit(predicted, (time, cause), lenses=["cause:relapse"])


@pytest.mark.slow
def test_command_line(tmp_path):
    predicted, (time, cause), x = data(6, 300, factor=2.5)
    rates = 0.5 * np.exp(0.7 * x), 0.4 * np.exp(-0.4 * x)
    table = {"years": time, "cause": cause, "high": x > 0}
    for name, rate in zip(("relapse", "death"), (rates, rates[::-1]), strict=True):
        table |= {f"cif_{name}_{at:g}": incidence(*rate)[:, k] for k, at in enumerate(TIMES.round(9))}
    pd.DataFrame(table).to_csv(tmp_path / "rows.csv", index=False)
    named = ["--time", "years", "--event", "cause", "--incidence", "cif_*", "--group", "high"]
    how = ["--lens", LENSES[0], "--lens", LENSES[1], "--seed", "0", "--resamples", "99"]
    found = command(
        "audit", str(tmp_path / "rows.csv"), *named, *how, "--json", "-", "--fail-on", "never"
    )
    told = json.loads(found.stdout)
    own = caltest.audit(
        predicted, (time, cause), groups={"high": x > 0}, lenses=LENSES, n_resamples=99, rng=0
    )
    assert told["event"] == "any event"
    assert told["pvalue"] == own.pvalue
    assert {view["lens"] for view in told["views"]} == set(LENSES)


@pytest.mark.level
@pytest.mark.parametrize("censored", [4.5, 1.0, 0.33])
def test_level(censored):
    horizon = {4.5: 2.0, 1.0: 1.0, 0.33: 0.5}[censored]
    lenses = [f"cause:{cause}/until:{horizon:g}" for cause in ("relapse", "death")]
    found = 0
    for seed in range(100):
        predicted, outcomes, x = data(seed, censored=censored)
        groups = {"high": x > 0}
        audit = caltest.audit(
            predicted, outcomes, lenses=lenses, groups=groups, n_resamples=199, rng=seed
        )
        found += audit.rejected
    assert found <= 13  # of 5%: more in 0.1%


@pytest.mark.slow
def test_other_events_taken_as_censored_show_an_error_that_is_none():
    rng = np.random.default_rng(0)
    x = rng.normal(size=8000)
    one, other = 0.35 * np.exp(0.5 * x), 0.7 * np.exp(-0.2 * x)
    risk, end = incidence(one, other), rng.uniform(0.2, 2.5, 8000)
    time, cause = (
        rng.exponential(1.0 / (one + other)),
        np.where(rng.random(8000) < one / (one + other), 1, 2),
    )
    seen = np.minimum(time, end), np.where(time <= end, cause, 0)
    both = caltest.predictive.Survival(incidence={1: risk, 2: incidence(other, one)}, times=TIMES)
    (right,) = caltest.audit(both, seen, lenses=["cause:1/until:1"], n_resamples=39, alpha=0.1).views
    alone = caltest.predictive.Survival(risk=risk[:, 9], times=1.0)
    wrong = caltest.audit(alone, (seen[0], seen[1] == 1), n_resamples=39, alpha=0.1).views[0]
    assert right.predicted == wrong.predicted
    assert abs(right.error) < 0.01
    assert wrong.error < -0.06
    assert right.inside is None
