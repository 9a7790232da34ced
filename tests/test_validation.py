"""The studies of the record: they run, they go on where they were, and their verdicts are right."""

import sys
from pathlib import Path

import numpy as np
import pytest
from pages import of_source, rows_of

pytestmark = [of_source, pytest.mark.usefixtures("pictures", "from_the_root")]


@pytest.fixture
def options(tmp_path):
    from validation._cells import Options

    return Options(tmp_path, quick=True)


def run(*arguments):
    from validation.__main__ import main

    return main([str(each) for each in arguments])


# ------------------------------------------------------------------ the command


def test_the_list_names_every_study_and_every_module_of_the_record(capsys):
    from validation._registry import STUDIES

    assert run("--list") == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in STUDIES)
    assert "needs the reference data" in listed


def test_an_unknown_study_and_no_study_are_refused(capsys):
    with pytest.raises(SystemExit):
        run("widman")
    assert "no study is called widman" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        run("--quick")
    assert "--list" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("study", "only", "file"),
    [
        ("validity", "/ ecd /", "validity.png"),
        ("power_curves", "/ ecd /", "power_curves.png"),
        ("peers", "", "peers.csv"),
        ("others", "caltest / pit_ks", "others_summary.csv"),
    ],
)
def test_quick_runs_leave_results_and_a_record(study, only, file, tmp_path, capsys):
    """Of a part; `.ci/run` runs them all, whole."""
    assert run(study, "--quick", "--only", only, "--results", tmp_path) == 0, capsys.readouterr().out
    assert (tmp_path / file).stat().st_size > 0
    (record,) = rows_of(tmp_path / "runs.csv")
    assert (record["study"], record["mode"], record["runs"]) == (study, "quick", "1")
    assert record["numpy"] == np.__version__


def test_a_study_that_fails_is_named_and_the_others_run(tmp_path, capsys, monkeypatch):
    from validation import _registry

    def broken(_):
        raise ValueError("no data")

    monkeypatch.setitem(_registry.STUDIES, "ecd", _registry.Study("", "", broken, ()))
    monkeypatch.setitem(_registry.STUDIES, "peers", _registry.Study("", "", lambda _: None, ()))
    assert run("ecd", "peers", "--quick", "--results", tmp_path) == 1
    said = capsys.readouterr().out
    assert "ecd FAILED: ValueError: no data" in said
    assert "failed: ecd" in said
    assert [row["study"] for row in rows_of(tmp_path / "runs.csv")] == ["peers"]


def test_without_reference_data_a_study_is_left_out_and_said(tmp_path, capsys, monkeypatch):
    from validation import __main__ as command

    monkeypatch.setattr(command, "REFERENCE", tmp_path / "none")
    assert run("widmann_networks", "--quick", "--results", tmp_path) == 0
    assert "widmann_networks is left out" in capsys.readouterr().out


def test_a_study_that_does_not_leave_its_files_fails(tmp_path, capsys, monkeypatch):
    from validation import _registry

    def careless(options):
        (options.results / "one.csv").write_text("1")
        (options.results / "two.csv").write_text("")

    study = _registry.Study("", "", careless, ("one.csv", "two.csv"))
    monkeypatch.setitem(_registry.STUDIES, "ecd", study)
    assert run("ecd", "--quick", "--results", tmp_path) == 1
    assert "FAILED: FileNotFoundError: it did not write two.csv" in capsys.readouterr().out
    assert run("ecd", "--quick", "--no-pictures", "--results", tmp_path) == 0


def test_texts_that_nothing_has_are_refused(tmp_path, capsys):
    assert run("audit", "peers", "--quick", "--only", "sise", "--results", tmp_path) > 0
    assert "nothing is called sise in audit, peers" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


@pytest.fixture
def commands(monkeypatch):
    """A module of two parts, of which one forgets its file, and what it is called with."""
    from types import ModuleType

    from validation._command import Command, of_commands

    called = []

    def main(words):
        called.append(words)
        if words[0] == "good":
            Path(words[-1], "x.csv").write_text("done")

    module = ModuleType("validation.x")
    module.main = main
    monkeypatch.setitem(sys.modules, "validation.x", module)
    good, bad = (Command("x", part, (f"{file}.csv",), "-q", "-f") for part, file in PARTS)
    return of_commands("", "", good, bad), called


PARTS = (("good", "x"), ("bad", "y"))


def test_commands_are_run_in_either_mode_and_have_to_leave_their_files(commands, tmp_path):
    from validation._cells import Options

    study, called = commands
    assert study.leaves == ("x.csv", "y.csv")
    study.run(Options(tmp_path, quick=True, jobs=2, only=("good",)))
    study.run(Options(tmp_path / "..", only=("x good",)))
    quick, full = called
    assert quick == ["good", "-q", "--jobs", "2", "--results", str(tmp_path)]
    assert full[:2] == ["good", "-f"]
    with pytest.raises(FileNotFoundError, match=r"x bad did not write y\.csv"):
        study.run(Options(tmp_path, quick=True))


def test_a_command_is_not_run_while_its_results_are_there(commands, tmp_path, capsys):
    from validation._cells import Options

    study, called = commands
    (tmp_path / "x.csv").write_text("done")
    study.run(Options(tmp_path, only=("good",)))
    assert called == []
    assert "delete them to run it again" in capsys.readouterr().out


# ------------------------------------------------------------------ going on


def test_a_table_replaces_rows_of_one_key_and_survives(tmp_path):
    from validation._cells import Table

    table = Table(tmp_path / "t.csv", ("a", "b"))
    table.put([{"a": 1.0, "b": "x", "n": 3}, {"a": 0.1, "b": "x", "n": 4}])
    table.put([{"a": 1.0, "b": "x", "n": 5}])
    again = Table(tmp_path / "t.csv", ("a", "b"))
    assert again.get(a=1.0, b="x")["n"] == "5"
    assert again.get(a=2.0, b="x") is None
    assert len(again.where(b="x")) == 2
    assert not list(tmp_path.glob("*.tmp"))


@pytest.mark.slow
def test_the_counts_are_those_of_one_go_however_often_a_run_is_stopped(tmp_path, monkeypatch):
    from validation import validity
    from validation._cells import Options

    monkeypatch.setattr(validity, "DESIGNS", validity.DESIGNS[-1:])
    only = ("/ spiegelhalter", "monte_carlo")
    for name, steps in (("pieces", (7, 20, 40)), ("whole", (40,))):
        for wanted in steps:
            monkeypatch.setattr(validity, "BLOCK", 9)
            monkeypatch.setattr(validity, "DATASETS", wanted)
            validity.run(Options(tmp_path / name, only=only, pictures=False))
    pieces, whole = (rows_of(tmp_path / name / "validity.csv") for name in ("pieces", "whole"))
    assert float(pieces[0].pop("ties")) == pytest.approx(float(whole[0].pop("ties")), rel=1e-4)
    assert pieces == whole
    assert whole[0]["datasets"] == "40"


def test_the_number_of_data_sets_can_be_given(tmp_path):
    from validation import widmann
    from validation._cells import Options

    only = ("group=closed", "alpha=0.1", "m=2 ", "pi=0.0")
    widmann.run(Options(tmp_path, only=only, datasets=3, pictures=False))
    assert {row["datasets"] for row in rows_of(tmp_path / "widmann_errors.csv")} == {"3"}


def test_means_and_variances_are_pooled_exactly(options, monkeypatch):
    from validation import widmann

    values = np.random.default_rng(0).normal(3.0, 2.0, 30)
    for parts in ((values[:4], values[4:]), (values,)):
        estimates, errors = widmann.tables(options)
        cell = widmann.Cell("closed", 0, widmann.DESIGNS[0], 0)
        for part in parts:
            found = [{"estimate E": x, "D": abs(x) / 10.0} for x in part]
            widmann._add(found, cell, estimates, errors)
        (row,) = estimates.where(estimator="E")
        assert float(row["mean"]) == pytest.approx(values.mean(), rel=1e-8)
        assert float(row["variance"]) == pytest.approx(values.var(), rel=1e-8)
        (counted,) = errors.where(method="D")
        assert int(counted["p<=0.5"]) == np.count_nonzero(np.abs(values) <= 5.0)
        assert counted["datasets"] == row["datasets"] == "30"


def test_no_cell_begins_after_the_time(tmp_path):
    from validation import power_curves
    from validation._cells import Options

    power_curves.run(Options(tmp_path, minutes=-1.0))
    assert not (tmp_path / "power_curves.csv").exists()


# ------------------------------------------------------------------ generative models


@pytest.mark.parametrize("alpha", [[0.1] * 10, [0.3, 2.0, 5.0], [20.0, 0.5], [1.0, 1.0]])
def test_the_mean_total_variation_of_a_dirichlet_is_the_simulated_one(alpha):
    from validation.generative import mean_tv_dirichlet

    x, y = np.random.default_rng(6).dirichlet(alpha, (2, 40_000))
    assert mean_tv_dirichlet(alpha) == pytest.approx(np.abs(x - y).sum(axis=1).mean() / 2, rel=0.03)


# ------------------------------------------------------------------ accuracy of the analytic null


@pytest.mark.parametrize(("statistic", "by"), [("skce_uq", "Pearson III"), ("brier", "saddlepoint")])
def test_the_pvalue_of_the_study_is_the_package_s(statistic, by):
    import caltest
    from validation._study import fixed
    from validation.generative import m1
    from validation.moments import answers

    drawn = m1(rng=1)
    form, predictions = fixed(statistic, drawn)
    answered, pvalue = answers(statistic, form, predictions, predictions.sampler(0).draw(0, 1)[0])
    result = caltest.test(drawn.probs, drawn.labels, statistic, null="moments")
    assert (answered, pvalue(result.statistic)) == (by, pytest.approx(result.pvalue, rel=1e-9))


def test_where_the_package_draws_no_level_is_shown():
    from caltest._parallel import ALONE
    from validation.moments import cases, study

    case = next(each for each in cases(100, 100) if each.name.startswith("Beta(1, 99)"))
    rows = list(study(case, "skce_uq", ALONE))
    assert {(row["answered_by"], row["rate"], row["verdict"]) for row in rows} == {
        ("999 draws", "", "exact")
    }


def test_the_exact_level_counts_ties_for_the_null():
    from validation.moments import exact_pvalues, verdict

    values = np.array([0.0, 1.0, 1.0, 2.0])
    assert exact_pvalues(values, 1e-9, "greater").tolist() == [1.0, 0.75, 0.75, 0.25]
    assert exact_pvalues(values, 1e-9, "less").tolist() == [0.25, 0.75, 0.75, 1.0]
    assert exact_pvalues(values, 1e-9, "two-sided").tolist() == [0.5, 1.0, 1.0, 0.5]
    assert verdict(0.65, 0.7, 0.01, 0.1) == verdict(1.09, 0.7, 0.01, 0.1) == "met"
    assert verdict(0.57, 0.7, 0.01, 0.1) == verdict(1.13, 0.7, 0.01, 0.1) == "missed"
    assert verdict(0.59, 0.7, 0.01, 0.1) == "undecided"


@pytest.mark.parametrize("two_sided", [False, True])
def test_rejected_values_are_counted_on_either_side(two_sided):
    from validation.moments import rejected

    values = np.sort(np.random.default_rng(0).normal(size=1001))

    def pvalue(x):
        return min(1.0, np.exp(-abs(x)) if two_sided or x > 0 else 1.0)

    for level in (1.0, 0.3, 0.05, 1e-9):
        above, below = rejected(values, pvalue, level)
        assert [*values[:below], *values[above:]] == [x for x in values if pvalue(x) <= level]


# ------------------------------------------------------------------ verdicts


def test_proportions_are_compared_with_the_error_of_both():
    from validation.widmann_compared import _compared

    # 60 of 100 against 5000 of 10 000: pooled 5060/10100
    z, error = _compared(0.6, 0.5, 100)
    assert error == pytest.approx(np.sqrt(0.50099 * 0.49901 * (1 / 100 + 1 / 10_000)), rel=1e-4)
    assert z == pytest.approx(0.1 / error)
    assert _compared(1.0, 1.0, 100) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("z", "z_theirs", "convention", "cause"),
    [
        (3.9, 9.0, "t²", ""),
        (4.1, 0.5, "t²", "t²"),
        (4.1, 4.2, "t²", "unexplained"),
        (-4.1, -4.1, "", "unexplained"),
    ],
)
def test_a_convention_is_a_cause_only_if_it_removes_the_difference(z, z_theirs, convention, cause):
    from validation.widmann_compared import _row

    published = {"alpha": "0.1", "beta": "e1", "m": "2", "pi": "0.5"}
    row = _row("error", "T", published, "0.05", 0.1, 0.2, 50, 0.01, z, z_theirs, convention)
    assert row["cause"] == cause


def test_the_published_bound_squares_what_is_negative():
    from validation.widmann import ROWS, _squared

    assert _squared(-0.2) == _squared(0.2) == pytest.approx(np.exp(-(ROWS // 2) * 0.04 / 8.0))


def test_what_is_published_for_either_beta_counts_once():
    from validation.widmann_compared import once

    row = {
        "test": "T", "alpha": "0.1", "beta": "e1", "m": "2", "pi": "0", "level": "0.05",
        "error": "0.3",
    }  # fmt: skip
    same = {**row, "beta": "uniform", "pi": "0.0"}
    others = [{**same, "level": "0.1"}, {**row, "pi": "0.5"}, {**same, "pi": "0.5"}]
    assert once([row, same, *others]) == [row, *others]
    with pytest.raises(ValueError, match="two numbers"):
        once([row, {**same, "error": "0.4"}])


def test_verdicts_follow_binomial_limits():
    from validation.validity import verdict

    # 20 data sets at .05: P(X >= 6) = .00033, P(X >= 5) = .0026
    assert verdict(6, 20, 0.05, 0.001, 0.0) == "above"
    assert verdict(5, 20, 0.05, 0.001, 0.0) == "inside"
    # 200: P(X = 0) = .95^200 = 3.5e-5
    assert verdict(0, 200, 0.05, 0.001, 0.0) == "below"
    assert verdict(0, 200, 0.05, 0.001, 0.5) == "below (ties)"


def test_coarse_predictions_are_calibrated():
    from validation._designs import coarse

    drawn = coarse(40_000, 3, 4, np.random.SeedSequence(1))
    assert np.allclose(drawn.probs.sum(axis=1), 1.0)
    for value in (0.0, 0.25, 0.5, 1.0):
        rows, column = np.nonzero(drawn.probs == value)
        share = np.mean(drawn.labels[rows] == column)
        assert share == pytest.approx(value, abs=5.0 * np.sqrt(0.25 / len(rows)))
        assert value not in (0.0, 1.0) or share == value


def cell(design, statistic, null, datasets, rejections, ties=0.0):
    counts = {"p<=0.01": rejections // 5, "p<=0.05": rejections}
    what = {"design": design, "statistic": statistic, "null": null, "resamples": 199, "seed": 1}
    return {**what, "datasets": datasets, **counts, "ties": ties}


def test_pairs_are_pooled_over_designs_without_ties(tmp_path):
    """Each cell of 0.068 is inside its limits, their sum is not: 272 of 4000 at .05 is 5.2 sd off."""
    from validation._cells import Table
    from validation.validity import KEY, judged, pooled, summary

    table = Table(tmp_path / "validity.csv", KEY)
    table.put(cell(f"d{k}", "ecd", "monte_carlo", 1000, 68) for k in range(4))
    table.put(cell(f"d{k}", "brier", "monte_carlo", 1000, 10 + 40 * k, 0.1 * (1 - k)) for k in range(2))
    table.put([cell("d0", "ecd", "moments", 1000, 500)])
    rows = judged(table)
    assert [row["verdict"] for row in rows if row["null"] == "monte_carlo"][:8] == ["inside"] * 8
    (sharp,) = [row for row in pooled(rows) if row["statistic"] == "ecd" and row["level"] == 0.05]
    assert (sharp["designs_without_ties"], sharp["datasets"], sharp["rejections"]) == (4, 4000, 272)
    assert sharp["verdict"] == "above"
    assert 0.05 < sharp["low"] < 0.068 < sharp["high"]
    (untied,) = [row for row in pooled(rows) if row["statistic"] == "brier" and row["level"] == 0.05]
    assert (untied["designs_without_ties"], untied["rejections"], untied["verdict"]) == (
        1,
        50,
        "inside",
    )
    exact, *_ = [row for row in summary(rows) if (row["null"], row["level"]) == ("monte_carlo", 0.05)]
    assert (exact["cells"], exact["inside"], exact["below"], exact["below (ties)"]) == (6, 5, 0, 1)
    assert (exact["smallest_rate"], exact["largest_rate"]) == (0.01, 0.068)


def test_cells_with_ties_do_not_hide_an_excess(tmp_path):
    """700 of 10 000 without ties is too many; with 100 of 10 000 of a design with ties it is not."""
    from validation._cells import Table
    from validation.validity import KEY, judged, pooled

    table = Table(tmp_path / "validity.csv", KEY)
    table.put([cell("a", "ecd", "monte_carlo", 10_000, 700)])
    table.put([cell("b", "ecd", "monte_carlo", 10_000, 100, ties=0.2)])
    (of_five,) = [row for row in pooled(judged(table)) if row["level"] == 0.05]
    assert (of_five["rejections"], of_five["verdict"]) == (700, "above")
