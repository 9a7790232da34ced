"""How many rows an audit needs, before there are labels."""

import json

import numpy as np
import pandas as pd
import pytest
from support import command

import caltest
from caltest import auditing

RNG = np.random.default_rng(0)
P = RNG.beta(2.0, 18.0, 3000)
SITE = RNG.choice(["a", "b", "c"], 3000, p=[0.6, 0.25, 0.15])
GROUPS = {"site": SITE}


def drawn(n, seed, error=0.0):
    """Rows like those of the pilot, and labels."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(len(P), size=n)
    return P[rows], (rng.random(n) < P[rows] - error).astype(int), {"site": SITE[rows]}


@pytest.mark.level
@pytest.mark.parametrize("error", [0.0, pytest.param(0.005, marks=pytest.mark.level)])
def test_so_many_rows_are_declared_within_as_often_as_asked(error):
    planned = caltest.plan(P, groups=GROUPS, materiality=0.03, error=error, power=0.7)
    options = {"materiality": 0.03, "statistics": "citl", "n_resamples": 39, "rng": 0}
    within = 0
    for seed in range(20):
        p, y, groups = drawn(planned.n, seed, error)
        within += caltest.audit(p, y, groups=groups, **options).verdict == "within"
    assert 0.4 <= within / 20 <= 0.95


@pytest.mark.slow
def test_views_are_those_of_the_audit():
    planned = caltest.plan(P, groups=GROUPS, materiality=0.03)
    p, y, groups = drawn(3000, 0)
    audit = caltest.audit(p, y, groups=groups, materiality=0.03, n_resamples=99, rng=0)
    assert len(planned.views) == len(audit.views) + len(audit.rests)
    assert {(each.group, each.without) for each in planned.views} == {
        *((each.group, None) for each in audit.views),
        *((each.parent, each.group) for each in audit.rests),
    }
    assert planned.views[0].group == auditing.Group.of(site="c")
    for view in planned.views:
        assert view.predicted == pytest.approx(0.1, abs=0.01)
        assert view.n == int(np.ceil(view.rows / view.share))


@pytest.mark.slow
def test_of_one_view_it_is_what_the_audit_asks_for():
    labels = (np.random.default_rng(2).random(300) < P[:300]).astype(int)
    audit = caltest.audit(P[:300], labels, materiality=0.02, n_resamples=99, rng=0)
    planned = caltest.plan(P[:300], materiality=0.02)
    assert planned.n == planned.views[0].rows == audit.rows_needed


def test_rows_give_a_power_and_a_power_rows():
    planned = caltest.plan(P, groups=GROUPS, materiality=0.02)
    again = caltest.plan(P, groups=GROUPS, materiality=0.02, n=planned.n)
    assert again.power == pytest.approx(planned.power, abs=0.02)
    assert caltest.plan(P, groups=GROUPS, materiality=0.02, n=planned.n // 3).power < 0.1
    assert caltest.plan(P, materiality=0.02).n < planned.n
    assert caltest.plan(P, materiality=0.02, error=0.01).n > caltest.plan(P, materiality=0.02).n
    assert caltest.plan(P, materiality=0.02, weights=RNG.uniform(0.5, 2.0, 3000)).n > 2000
    in_clusters = caltest.plan(P, materiality=0.02, clusters=np.arange(3000) // 10)
    assert in_clusters.n > 5 * caltest.plan(P, materiality=0.02).n
    wider = caltest.plan(P, materiality=0.001, materiality_ratio=1.5).n
    assert wider == caltest.plan(P, materiality_ratio=1.5).n


@pytest.mark.slow
@pytest.mark.parametrize("pilot", [300, 3000])
def test_groups_that_are_small_in_the_pilot_count_if_they_will_be_looked_at(pilot):
    planned = caltest.plan(P[:pilot], groups={"site": SITE[:pilot]}, materiality=0.03)
    crossed = {"site": SITE[:pilot], "day": (np.arange(pilot) % 6).astype(str)}
    more = caltest.plan(P[:pilot], groups=crossed, materiality=0.03)
    assert min(view.share for view in more.views) < 0.05
    assert more.n > 3 * planned.n
    few = caltest.plan(P[:pilot], groups=crossed, materiality=0.03, n=600)
    assert len(few.views) < len(more.views)
    assert "fewer than 50 of 600 rows" in str(few)


@pytest.mark.level
def test_predictions_that_differ_make_fewer_rows_do():
    """The number of events varies less than if all predictions were the mean."""
    spread = np.random.default_rng(3).beta(0.3, 0.9, 4000)
    planned = caltest.plan(spread, materiality=0.02)
    assert planned.n < 0.8 * caltest.plan(np.full(4000, spread.mean()), materiality=0.02).n
    within, rng = 0, np.random.default_rng(1)
    for seed in range(60):
        p = rng.choice(spread, planned.n)
        y = (rng.random(planned.n) < p).astype(int)
        options = {"materiality": 0.02, "statistics": "citl", "n_resamples": 39, "rng": seed}
        within += caltest.audit(p, y, **options).verdict == "within"
    assert 0.65 <= within / 60 <= 0.95


def test_no_number_of_rows():
    planned = caltest.plan(P, materiality=0.02, error=0.03)
    assert planned.n is None
    assert "No number of rows would show a model whose means are wrong by 3 points" in str(planned)
    assert planned.to_frame()["n"].isna().all()


def test_classes_and_what_is_said():
    digits = caltest.datasets.load_digits_predictions("logistic_regression")
    planned = caltest.plan(digits.probs, materiality=0.02)
    assert len(planned.views) == 11
    text = " ".join(str(planned).split())
    assert text.startswith(f"{planned.n:,} rows show a calibrated model to be within 2 points")
    assert "the table has the rows for each alone" in text
    assert planned.to_frame()["n"].tolist() == sorted(planned.to_frame()["n"], reverse=True)
    json.dumps(planned.to_dict(), allow_nan=False)


@pytest.mark.slow
def test_the_command(tmp_path):
    path = tmp_path / "pilot.csv"
    pd.DataFrame({"p": P, "site": SITE}).to_csv(path, index=False)
    done = command("plan", path, "--columns", "p", "--group", "site", "--materiality", "0.03")
    planned = caltest.plan(P, groups=GROUPS, materiality=0.03)
    assert done.exit_code == 0, done.output
    assert f"{planned.n:,} rows show a calib" in " ".join(done.stdout.split())
    found = command("plan", path, "--group", "site", "--materiality", "0.03", "--n", 900, "--json")
    assert (
        json.loads(found.stdout)["power"]
        == caltest.plan(P, groups=GROUPS, materiality=0.03, n=900).power
    )
    wrong = command("plan", path, "--group", "site")
    assert wrong.exit_code == 2
    assert "there is no limit; give --materiality 0.02" in wrong.output
