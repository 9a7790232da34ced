"""Prediction sets: whether rows are covered, claimed of all rows together, or more by name."""

import json

import numpy as np
import pandas as pd
import pytest
from pages import follow
from support import command

import caltest
from caltest.predictive import Sets

LEVEL = 0.9


def conformal(n: int, rng: np.random.Generator, calibration: int = 500) -> tuple[np.ndarray, ...]:
    """Exact split conformal sets of five classes, by scores of which some rows say little."""

    def some(k: int) -> tuple[np.ndarray, np.ndarray]:
        logits = rng.normal(size=(k, 5)) * rng.choice([0.5, 2.0, 5.0], size=(k, 1))
        p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        return p, (p.cumsum(axis=1) < rng.random((k, 1))).sum(axis=1).clip(0, 4)

    p, y = some(calibration)
    scores = np.sort(1.0 - p[np.arange(calibration), y])
    p, y = some(n)
    return 1.0 - p <= scores[int(np.ceil((calibration + 1) * LEVEL)) - 1], y


MEMBERS, LABELS = conformal(600, np.random.default_rng(0))
COVERED = MEMBERS[np.arange(600), LABELS]


def audit(sets: Sets, labels: object = LABELS, **options: object) -> caltest.Audit:
    return caltest.audit(sets, labels, n_resamples=199, rng=0, **options)


def test_coverage_of_all_rows_alone_is_claimed() -> None:
    found = audit(Sets(MEMBERS, LEVEL), groups=np.arange(600) % 2, features={"x": np.arange(600.0)})
    assert [(view.lens, view.group) for view in found.views] == [("coverage", None)]
    assert found.views[0].observed == COVERED.mean()
    assert found.views[0].predicted == pytest.approx(LEVEL)
    assert found.sides == ("over",)
    assert len(found.checks) == 1
    assert not found.rests
    columns = {view.group.column for view in found.described if view.group}
    assert columns == {"group", "x", "set size", "class"}
    by_class = {view.group.value: view for view in found.described if view.group.column == "class"}
    assert by_class["3"].observed == COVERED[LABELS == 3].mean()
    assert found.to_dict()["described"][0]["low"] == found.described[0].low


def test_claims_are_views_as_all_others() -> None:
    sets = Sets(MEMBERS, LEVEL, claims=["size", "class", "groups", "features"])
    found = audit(sets, groups=np.arange(600) % 2, features={"x": np.arange(600.0)})
    assert not found.described
    assert {view.group.column for view in found.views if view.group} == {"group", "set size", "class"}
    assert found.features == ("x",)
    assert found.n_slices
    assert {check.statistic for check in found.checks} == {"citl", "feature_scan"}
    with_size = audit(Sets(MEMBERS, LEVEL, claims="size"), groups=np.arange(600) % 2)
    assert {view.group.column for view in with_size.views if view.group} == {"set size"}
    assert {view.group.column for view in with_size.described} == {"group", "class"}


def test_too_much_coverage_is_no_error() -> None:
    everything = np.ones((300, 3), dtype=bool)
    found = audit(Sets(everything, LEVEL), np.arange(300) % 3)
    assert found.pvalue == 1.0
    assert found.verdict == "not found"
    assert caltest.test(Sets(everything, LEVEL), np.arange(300) % 3, rng=0).pvalue == 1.0
    none = audit(Sets(~everything, LEVEL), np.arange(300) % 3)
    assert none.verdict == "found"
    assert none.worst.direction == "over"
    assert "Coverage is about 90 percentage points too low." in str(none)


def test_a_test_ranks_the_count() -> None:
    few = np.zeros((60, 2), dtype=bool)
    few[:48, 0] = True
    result = caltest.test(Sets(few, LEVEL), np.zeros(60, int), n_resamples=9999, rng=0)
    from scipy.stats import binom

    assert result.pvalue == pytest.approx(binom.cdf(48, 60, LEVEL), abs=0.004)


@pytest.mark.parametrize(
    "shape", ["bool", "0/1", "MAPIE", "lists", "frame", "names", "tuple", "series"]
)
def test_sets_of_all_forms_are_the_same(shape: str) -> None:
    names = np.array(["ant", "bee", "cat", "dog", "eel"])
    frame = pd.DataFrame(MEMBERS, columns=names)
    lists = [np.flatnonzero(row).tolist() for row in MEMBERS]
    given, labels = {
        "bool": (MEMBERS, LABELS),
        "0/1": (MEMBERS.astype(int), LABELS),
        "MAPIE": (MEMBERS[:, :, None], LABELS),
        "lists": (lists, LABELS),
        "tuple": (tuple(lists), LABELS),
        "series": (pd.Series(lists), LABELS),
        "frame": (frame, names[LABELS]),
        "names": ([names[row].tolist() for row in lists], names[LABELS]),
    }[shape]
    found = caltest.audit(Sets(given, LEVEL), labels, n_resamples=19, rng=0, alpha=0.1)
    assert found.views[0].observed == COVERED.mean()
    size = MEMBERS.sum(axis=1)
    assert found.set_sizes.mean == pytest.approx(size.mean())
    assert found.set_sizes.median == np.median(size)
    assert found.set_sizes.single == pytest.approx(np.mean(size == 1))


def test_intervals_have_ends_that_may_be_infinite() -> None:
    rng = np.random.default_rng(1)
    y, upper = rng.normal(size=400), np.where(np.arange(400) < 100, np.inf, 1.2 + rng.random(400))
    found = audit(Sets(lower=np.full(400, -np.inf), upper=upper, level=0.9), y)
    assert found.views[0].observed == np.mean(y <= upper)
    both = np.column_stack([-upper, upper])
    one, other = (audit(Sets(each, 0.9), y) for each in (both, both[:, :, None]))
    assert one.views == other.views
    assert one.set_sizes.empty is None
    assert [view.group.value for view in one.described][-1].endswith("to inf")
    assert audit(Sets(lower=y, upper=y, level=0.9), y).views[0].observed == 1.0


def test_levels_may_differ() -> None:
    found = audit(Sets(MEMBERS, np.where(np.arange(600) < 300, 0.8, 0.95)))
    assert found.views[0].predicted == pytest.approx(0.875)


def test_one_calibration_set_widens_what_chance_explains() -> None:
    members, y = np.zeros((2000, 2), dtype=bool), np.zeros(2000, int)
    members[:1740, 0] = True  # 87%: 4.5 standard errors of 2000 rows below, and 1 of Beta(91, 10)
    assert caltest.test(Sets(members, LEVEL), y, rng=0).pvalue == 0.001
    shared = Sets(members, LEVEL, calibration_rows=100)
    from scipy.stats import beta

    assert caltest.test(shared, y, rng=0).pvalue == pytest.approx(beta.cdf(0.87, 91, 10), abs=0.05)
    found = audit(shared, y)
    assert found.pvalue > 0.1
    assert found.views[0].low > 0.0
    assert any("one calibration set" in note for note in found.warnings)
    by_class = Sets(members, LEVEL, calibration_rows={0: 100, 1: 50})
    assert caltest.test(by_class, y, rng=0).pvalue == pytest.approx(beta.cdf(0.87, 91, 10), abs=0.05)


def test_weights_clusters_and_limits() -> None:
    rng = np.random.default_rng(2)
    weighted = audit(Sets(MEMBERS, 0.85), weights=1.0 + rng.random(600))
    assert weighted.effective_n < 600
    assert weighted.verdict == "not found"
    clustered = audit(Sets(MEMBERS, 0.85), clusters=np.arange(600) // 3, materiality=0.05)
    assert clustered.clusters == 200
    assert clustered.verdict in ("within", "undecided")
    assert audit(Sets(MEMBERS, 0.85), materiality=0.05).verdict == "within"


def test_reports_say_what_is_not_promised() -> None:
    rows = np.arange(600)
    members = np.eye(3, dtype=bool)[rows % 3] | (rows >= 300)[:, None]
    members[:60] = np.roll(members[:60], 1, axis=1)  # 80% of one class, 100% of three
    found = audit(Sets(members, LEVEL), rows % 3)
    assert found.verdict == "not found"
    text, page = str(found), caltest.report.to_html(found)
    said = "Coverage is 80% (73% to 86%) where set size is 1; the claim is of all rows together."
    assert said in " ".join(text.split())
    for each in (text, page, caltest.report.to_markdown(found)):
        assert "Not promised" in each
        assert "mean 2.00 classes" in each.lower()
    assert json.loads(caltest.report.to_json(found))["set_sizes"]["mean"] == pytest.approx(2.0)


TABLE = np.array([[True, False], [True, True]])
_WRONG = {
    "members holds 0.5": lambda: Sets(np.full((2, 3), 0.5), 0.9),
    "of one level: members": lambda: Sets(np.ones((4, 3, 2)), 0.9),
    "give a probability such as 0.9": lambda: Sets(TABLE, 90),
    "one for each of 2 sets": lambda: Sets(TABLE, [0.9] * 3),
    "give the lower end first": lambda: Sets(lower=[1, 2], upper=[3, 1], level=0.9),
    "has the ends 2 and nan": lambda: Sets(lower=[1, 2], upper=[3, np.nan], level=0.9),
    "missing, or given twice": lambda: Sets(lower=[1, 2], level=0.9),
    "there is no claim 'sizes'": lambda: Sets(TABLE, 0.9, claims="sizes"),
    "a list of classes, each once": lambda: Sets([[0], [0, 0]], 0.9),
    "too few for level 0.9": lambda: audit(Sets(MEMBERS, 0.9, calibration_rows=8)),
    "that of each class; give all": lambda: audit(Sets(MEMBERS, 0.9, calibration_rows={0: 99})),
    "these are in clusters": lambda: audit(Sets(MEMBERS, 0.9, calibration_rows=99), clusters=LABELS),
    "tested by draws": lambda: caltest.test(Sets(MEMBERS, 0.9), LABELS, tolerance=0.02),
    "no column of members": lambda: audit(Sets(MEMBERS, 0.9), LABELS + 1),
    "one outcome for every set": lambda: audit(Sets(MEMBERS, 0.9), LABELS[1:]),
    "'ks' looks for errors of both sides": lambda: audit(Sets(MEMBERS, 0.9), statistics="ks"),
    "possible: less": lambda: caltest.test(Sets(MEMBERS, 0.9), LABELS, alternative="greater"),
    "coverage that is too low: materiality=": lambda: audit(
        Sets(MEMBERS, 0.9), materiality={"too_high": 0.1}
    ),
    "a bound is of errors": lambda: caltest.miscalibration_bounds(Sets(MEMBERS, 0.9), LABELS),
    "a certificate is of": lambda: caltest.certificate(Sets(MEMBERS, 0.9), LABELS),
    "'skce_uq' looks for errors": lambda: caltest.estimate(Sets(MEMBERS, 0.9), LABELS),
    "depends on no set; give the level": lambda: caltest.plan(Sets(MEMBERS, 0.9), materiality=0.02),
    "give level, such as 0.9": lambda: Sets(MEMBERS),
    "ends of intervals as lower and upper": lambda: audit(Sets(np.eye(2), 0.9), np.full(2, 5)),
    "have one name": lambda: Sets(pd.DataFrame(TABLE[:, [0, 1, 1]], columns=["a", 1, 1.0]), 0.9),
    "'groups', and none were": lambda: audit(Sets(MEMBERS, 0.9, claims="groups")),
    "'features', and none were": lambda: audit(Sets(MEMBERS, 0.9, claims=["size", "features"])),
    "'class', and none were": lambda: audit(
        Sets(lower=LABELS - 1, upper=LABELS + 1, level=0.9, claims="class")
    ),
    "give no lenses": lambda: audit(Sets(MEMBERS, 0.9), lenses="top_label"),
    "a monitor bets": lambda: caltest.Monitor().update(Sets(MEMBERS, 0.9), LABELS),
    "models are compared by": lambda: caltest.compare(
        {"a": Sets(MEMBERS, 0.9), "b": Sets(MEMBERS, 0.9)}, LABELS
    ),
}


@pytest.mark.parametrize("said", _WRONG)
def test_what_is_wrong_is_said(said: str) -> None:
    with pytest.raises(caltest.InputError, match=said):
        _WRONG[said]()


NAMES = np.array(["ant", "bee", "cat", "dog", "eel"])
HOW = {
    "columns": ["--sets", "in_", "--level", "0.9"],
    "words": ["--sets", "words", "--level", "each"],
    "lists": ["--sets", "lists", "--level", "0.9", "--calibration-rows", "500"],
    "claims": ["--sets", "in_", "--level", "0.9", "--claims", "size,features", "--feature", "age"],
}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("how", HOW)
def test_files_state_sets(how: str, suffix: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = pd.DataFrame(MEMBERS.astype(int), columns=[f"in_{name}" for name in NAMES])
    table["words"] = ["|".join(NAMES[row]) for row in MEMBERS]
    table["lists"] = [json.dumps(NAMES[row].tolist()) for row in MEMBERS]
    table = table.assign(each=LEVEL, label=NAMES[LABELS], age=np.arange(600) % 70, region=LABELS % 2)
    table.to_csv("sets.csv", index=False) if suffix == "csv" else table.to_parquet("sets.parquet")
    more = ["--group", "region", "--seed", "1", "--resamples", "99", "--json", "-"]
    found = json.loads(command("audit", f"sets.{suffix}", *HOW[how], *more).stdout)
    assert found["views"][0]["observed"] == COVERED.mean()
    columns = {each["group"]["conditions"][0]["column"] for each in found["described"]}
    claimed = {"set size"} if how == "claims" else set()
    assert columns == {"class", "set size", "region"} - claimed
    assert found["features"] == (["age"] if how == "claims" else [])


def test_files_state_intervals(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    y = np.random.default_rng(3).normal(size=300)
    low = np.where(y < 0.0, -np.inf, -1.0)
    pd.DataFrame({"low": low, "high": 1.3, "y": y}).to_csv("ends.csv", index=False)
    ends = ["--lower", "low", "--upper", "high"]
    run = command("test", "ends.csv", *ends, "--label", "y", "--level", "0.9", "--seed", "1", "--json")
    held = (low <= y) & (y <= 1.3)
    stated = caltest.test(Sets(lower=low, upper=np.full(300, 1.3), level=0.9), y, rng=1)
    assert json.loads(run.stdout)["pvalue"] == stated.pvalue
    assert held.mean() < 0.95
    with pytest.raises(caltest.InputError, match="are of probabilities"):
        caltest.files.read("ends.csv", "y", columns={"sets": "low", "level": 0.9}, logits=True)
    for options, said in (
        (ends, "sets state no level; give --level"),
        (ends[:2], "missing, or given twice"),
    ):
        assert said in command("test", "ends.csv", *options, "--label", "y").stderr.replace("\n", " ")


def test_empty_sets_are_taken_with_others() -> None:
    rows = np.arange(600)
    members = (np.eye(3, dtype=bool)[rows % 3] | (rows >= 400)[:, None]) & (rows >= 120)[:, None]
    found = audit(Sets(members, LEVEL), rows % 3, materiality_ratio=1.05)
    by_size = [view.group.words for view in found.described if "size" in view.group.column]
    assert by_size == ["set size = 0 to 1", "set size = 3"]
    text = str(found)
    assert "coverage by size and class." in text
    assert "a factor of 1.05 too low" in text
    whole = caltest.report.to_html(found)
    assert "no groups" in whole
    assert "are covered ▸" not in whole
    grouped = caltest.report.to_html(audit(Sets(members, LEVEL), rows % 3, groups=rows % 2))
    assert "no groups" not in grouped


def test_what_is_not_settled_by_rows_is_not_by_more() -> None:
    members = np.zeros((2000, 2), dtype=bool)
    members[:1740, 0] = True
    shared = Sets(members, LEVEL, calibration_rows=100)
    found = audit(shared, np.zeros(2000, int), materiality={"too_low": 0.01})
    assert found.verdict == "undecided"
    assert "audit again with more calibration rows" in " ".join(str(found).split())
    tested = str(caltest.test(shared, np.zeros(2000, int), rng=0))
    assert "coverage is at least the level of the sets" in tested
    assert "2 classes" not in tested


def test_cells_that_say_nothing_are_named(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    ends = pd.DataFrame({"low": ["1", None, "2"], "high": ["x", "3", "4"], "y": [2, 2, 3]})
    ends.to_parquet("ends.parquet")
    pd.DataFrame({"in_a": [1, 0, 2], "in_b": 1, "y": list("aab")}).to_csv("bits.csv", index=False)
    lost = ["ends.parquet", "--lower", "low", "--upper", "high"]
    for given, said in (
        (lost, "column 'low' is empty in row 1"),
        (["bits.csv", "--sets", "in_"], "column 'in_a' holds '2' in row 2 (counting from 0); give 1"),
    ):
        run = command("test", *given, "--label", "y", "--level", "0.9")
        assert said in run.stderr.replace("\n", " ")
        assert run.exit_code == 2


def test_limits_are_of_coverage_that_is_too_low() -> None:
    found = audit(Sets(MEMBERS, LEVEL), materiality={"too_low": 0.05})
    same = audit(Sets(MEMBERS, LEVEL), materiality=0.05)
    assert found.verdict == same.verdict == "within"
    assert found.materiality == {"too_low": 0.05, "too_high": None}
    assert json.loads(caltest.report.to_json(found))["materiality"] == found.materiality
    assert str(found).partition("alone")[0] == str(same).partition("alone")[0]
    assert audit(Sets(MEMBERS, LEVEL), materiality={"too_low": 0}).verdict in ("within", "undecided")
    assert caltest.estimate(Sets(MEMBERS, LEVEL), LABELS, "citl") < 0.0


def test_the_page_runs(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    follow("docs/sets.md")
