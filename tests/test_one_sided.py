"""Limits of one side: what is too high matters and what is too low does not, or the other way round."""

import itertools
import json
import re

import numpy as np
import pytest
import scipy.stats
from support import command, sentence, some_fast

import caltest
from caltest.predictive import Survival
from caltest.report.summary import first_screen, pictured

HIGH, LOW = {"too_low": None, "too_high": 0.02}, {"too_low": 0.02, "too_high": None}
NONE_HIGH = {"too_low": None, "too_high": 0}
QUICK = {"statistics": "citl", "n_resamples": 199, "rng": 0}


def drawn(shift, rows=1000, seed=1):
    """Predictions that are too high by ``shift`` on average, and labels."""
    rng = np.random.default_rng(seed)
    p = 0.1 + 0.8 * rng.beta(2.0, 5.0, rows)
    return p, (rng.random(rows) < p - shift).astype(int)


def test_all_of_the_level_is_on_the_side_that_counts():
    """The end is that of two sides at twice the level; on the other side any true rate may be."""
    p, y = drawn(0.03)
    own = caltest.audit(p, y, materiality=0.02, alpha=0.05, **QUICK).views[0]
    both = caltest.audit(p, y, materiality=0.02, alpha=0.1, **QUICK)
    for limit, end, other, trivial in ((HIGH, "low", "high", 0.0), (LOW, "high", "low", -1.0)):
        found = caltest.audit(p, y, materiality=limit, alpha=0.05, **QUICK)
        for one, two in zip(
            [*found.views, *found.views[0].parts], [*both.views, *both.views[0].parts], strict=True
        ):
            assert getattr(one, end) == getattr(two, end)
            assert getattr(one, other) == pytest.approx(one.predicted + trivial)
        assert (found.views[0].own_low, found.views[0].own_high) == (own.own_low, own.own_high)
        assert found.at_most is None
        assert found.sides == (("over",) if end == "low" else ("under",))


CASES = [
    (-0.08, HIGH, "within", "keeps its promise of at least 32.9%: it is shown to be at most 2 p"),
    (0.08, LOW, "within", "keeps its promise of at most 32.9%: it is shown to be at most 2 p"),
    (0.08, HIGH, "material", "predicted probability of default is about 7 percentage points too high"),
    (-0.08, LOW, "material", "is about 8 percentage points too low"),
    (-0.08, NONE_HIGH, "within", "it is shown to be right or too low"),
    (-0.002, NONE_HIGH, "undecided", "No error that matters was found: at most 2.1 points too"),
    (0.0, {"too_low": 0.05, "too_high": 0.001}, "undecided", "No error was found. To show the average"),
]  # fmt: skip


@pytest.mark.parametrize("case", some_fast(CASES, CASES[0], CASES[5]))
def test_verdicts_and_their_sentences(case):
    shift, limit, verdict, told = case
    p, y = drawn(shift)
    found = caltest.audit(p, y, materiality=limit, event="default", **QUICK)
    assert found.verdict == verdict
    assert told in found.headline
    # No sentence, table or bar has the end of a side that does not matter.
    other = f"{100.0 * found.views[0].predicted:.1f}", f"{100.0 - 100.0 * found.views[0].predicted:.1f}"
    texts = [str(found), caltest.report.to_markdown(found), caltest.report.to_html(found)]
    for text, end in ((" ".join(text.split()), end) for text in texts for end in other):
        assert not re.search(rf"{end} points too| to [+−]?{re.escape(end)}\b|{end} to ", text)
    if None in limit.values():
        low, value, high = first_screen(found).slices.rows[0].bar
        assert value in (low, high)
        assert len(first_screen(found).slices.corridor) == 1


def test_an_error_on_the_other_side_is_a_second_fact():
    p, y = drawn(-0.08)
    found = caltest.audit(p, y, materiality=HIGH, event="default", **QUICK)
    assert found.rejected
    assert found.story.spared
    assert not found.fails()
    assert not found.fails("undecided")
    assert found.fails("found")
    text = " ".join(str(found).split())
    assert "an error was found on the side that does not matter" in text
    assert "of up to 2 points too high, and any too low, do not matter" in text
    assert "all: 95%" in text
    assert "or more" in text
    few = caltest.audit(*drawn(-0.08, 500), materiality=NONE_HIGH | {"too_high": 1e-4}, **QUICK)
    assert few.story.spared
    assert "the side that does not matter" in " ".join(str(few).split())


def test_the_end_that_decides_is_on_the_axis_and_named():
    p, y = drawn(0.0, rows=200)
    found = caltest.audit(p, y, materiality={"too_high": 0.03}, **QUICK)
    assert found.materiality == {"too_low": None, "too_high": 0.03}
    assert "points too high (95% confidence, by itself) is possible" in " ".join(str(found).split())
    table = first_screen(found).slices
    owns = [row.own for row in table.rows if row.own]
    assert owns
    assert all(table.axis.low <= low <= high <= table.axis.high for low, high in owns)


@pytest.mark.slow
def test_what_leads_is_never_said_not_to_matter():
    """Of confidence that is too high on average, a tenth of a class is too low."""
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), 3000)
    truth = probs**0.6 / (probs**0.6).sum(axis=1, keepdims=True)
    labels = (rng.random((3000, 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)
    found = caltest.audit(probs, labels, materiality={"too_low": 0.03, "too_high": None}, **QUICK)
    assert (found.verdict, found.story.subject.kind) == ("material", "part")
    assert not found.story.spared


@pytest.mark.slow
def test_parts_and_groups_are_drawn_with_the_end_that_counts():
    p, y = drawn(0.08)
    found = caltest.audit(p, y, groups={"site": np.where(p > 0.3, "a", "b")}, materiality=HIGH, **QUICK)
    assert found.verdict == "material"
    for _, picture in pictured(found):
        for mark in picture.marks:
            if mark.kind in ("intervals", "bars"):
                ends = np.concatenate(
                    [np.ravel(mark.end), np.ravel(mark.y if mark.kind == "intervals" else mark.x)]
                )
                assert picture.y.high <= 1.0
                assert ends.max() < 0.9
    data = json.loads(caltest.report.to_json(found))
    assert data["materiality"] == {"too_low": None, "too_high": 0.02}
    assert data["sides"] == ["over"]


@pytest.mark.slow
def test_fewer_rows_show_one_side():
    p, _ = drawn(0.0, 500)
    one, two = (caltest.plan(p, materiality=limit) for limit in (HIGH, 0.02))
    assert one.n < two.n
    assert "to be at most 2 points too high" in " ".join(str(one).split())
    none = caltest.plan(p, materiality=NONE_HIGH)
    assert none.n is None
    assert "No number of rows would show a calibrated model to be right or too low" in " ".join(
        str(none).split()
    )


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    p, y = drawn(-0.08, 1000)
    np.savetxt(path, np.column_stack([p, y]), delimiter=",", header="p,label", comments="", fmt="%.6f")
    return path


@pytest.mark.slow
def test_a_limit_of_one_side_on_the_command_line(table):
    given = "--columns", "p", "--statistic", "citl", "--seed", 1, "--resamples", 199
    found = command("audit", table, *given, "--materiality-high", 0.02)
    assert found.exit_code == 0, found.output
    assert "Within your limit of 2 points too high" in " ".join(found.output.split())
    found = command("audit", table, *given, "--materiality-low", 0.02, "--materiality-high", 0.3)
    assert found.exit_code == 1
    text = " ".join(found.output.split())
    assert "larger than your limit of 2 points too low or 30 points too high" in text
    found = command("plan", table, "--columns", "p", "--materiality-low", 0.05)
    assert "to be at most 5 points too low" in " ".join(found.output.split())


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        ({}, "materiality is {}; give {'too_low': 0.02, 'too_high': None}"),
        ({"too_low": None}, "give {'too_low': 0.02, 'too_high': None}, None where none matters"),
        ({"high": 0.1}, "give {'too_low': 0.02, 'too_high': None}, None where none matters"),
        ({"too_high": 1.0}, r"materiality\['too_high'\] is 1.0; give a difference of probabilities"),
        ({"too_high": 0, "too_low": 0.1}, r"materiality\['too_high'\] is 0; give a difference of"),
    ],
)
def test_what_is_no_limit(limit, told):
    sentence(lambda: caltest.audit([0.5] * 60, [0, 1] * 30, materiality=limit), told)


@pytest.mark.slow
def test_events_of_times_have_one_limit():
    rng = np.random.default_rng(0)
    rate, grid = np.exp(rng.normal(-1.0, 0.5, 300)), np.linspace(0.05, 8.0, 80)
    came, lost = rng.exponential(1.0 / (1.5 * rate)), rng.exponential(3.0, 300)
    seen = np.empty(300, [("event", bool), ("time", float)])
    seen["event"], seen["time"] = came <= lost, np.minimum(came, lost)
    law = Survival(np.exp(-rate[:, None] * grid), times=grid)
    how = {"lenses": "until:2", "n_resamples": 99, "rng": 1}
    low, both = (
        caltest.audit(law, seen, materiality=m, alpha=a, **how) for m, a in ((LOW, 0.05), (0.02, 0.1))
    )
    high = caltest.audit(law, seen, materiality=HIGH, **how)
    assert low.views[0].events.low == both.views[0].events.low
    assert high.views[0].events.high == both.views[0].events.high
    assert low.views[0].events.high is high.views[0].events.low is None
    assert low.verdict == "material"
    assert " or more) match the number of events" in " ".join(str(low).split())
    assert "∞" not in str(low)
    assert caltest.report.to_html(low)


# --- at the limit

SETS = 60


def share(verdict, limit, errors, rows):
    """How often the verdict is given, of groups whose probabilities are too high by these errors."""
    given = 0
    for seed in range(SETS):
        rng, group = np.random.default_rng([seed, rows]), np.arange(rows) % len(errors)
        p = 0.1 + 0.4 * rng.beta(2.0, 3.0, rows)
        y = (rng.random(rows) < p - np.take(errors, group)).astype(int)
        options = {"statistics": "citl", "n_resamples": 39, "rng": seed}
        given += (
            caltest.audit(p, y, groups={"g": group}, materiality=limit, **options).verdict == verdict
        )
    return given


@pytest.mark.level
@pytest.mark.parametrize("rows", [300, 2000])
@pytest.mark.parametrize(
    ("verdict", "limit", "errors"),
    [
        ("material", HIGH, [0.02, 0.02]),
        ("material", LOW, [-0.02, -0.02]),
        ("material", HIGH, [-0.3, 0.0]),
        ("within", HIGH, [0.02, -0.1]),
        ("within", LOW, [-0.02, 0.08]),
    ],
)
def test_what_is_just_at_the_limit_is_seldom_beyond_or_within(verdict, limit, errors, rows):
    assert share(verdict, limit, errors, rows) <= scipy.stats.binom.ppf(1 - 1e-4, SETS, 0.05)


@pytest.mark.level
def test_more_is_found_on_one_side():
    one, two = (share("material", limit, [0.042, 0.042], 2000) for limit in (HIGH, 0.02))
    assert one > two


# --- monitors


@pytest.mark.parametrize(("limit", "sign"), [(NONE_HIGH, 1.0), (LOW, -1.0)])
def test_a_monitor_of_one_side_is_fair_whatever_is_true_on_the_other(limit, sign):
    stated, totals = np.array([0.3, 0.05, 0.6, 0.9]), []
    bound = stated - sign * max(filter(None, limit.values()), default=0.0)
    for move in (0.0, 0.05, 0.5):
        truth = np.clip(bound + sign * move, 0.0, 1.0)
        totals.append(0.0)
        for labels in itertools.product(range(2), repeat=4):
            chance = np.where(labels, truth, 1.0 - truth).prod()
            totals[-1] += chance * caltest.Monitor(tolerance=limit).update(stated, labels).evalue
    assert totals[0] == pytest.approx(1.0, rel=1e-12)
    assert totals[0] >= totals[1] >= totals[2]


def test_a_monitor_of_one_side_is_kept(tmp_path):
    p, high = drawn(0.09)
    low = drawn(-0.09)[1]
    monitor, both = caltest.Monitor(tolerance=NONE_HIGH), caltest.Monitor()
    assert not caltest.Monitor(tolerance=NONE_HIGH).update(p, low).alarm
    monitor.update(p[:500], high[:500])
    monitor.save(tmp_path / "state.json")
    state = caltest.Monitor.load(tmp_path / "state.json").update(p[500:], high[500:])
    assert state.alarm
    assert state.log_evalue > both.update(p, high).log_evalue
    assert state.tolerance == NONE_HIGH
    assert "only errors of more than 0 points too high count" in " ".join(str(state).split())
    assert json.loads(json.dumps(state.to_dict()))["tolerance"] == NONE_HIGH
