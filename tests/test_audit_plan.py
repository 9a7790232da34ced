"""What an audit looks at, and what it does not: groups of every kind, classes, caps, refusals."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from support import dirichlet, labels_from

import caltest
from caltest import InputError
from caltest.auditing.audits import bounded_looks
from caltest.auditing.draws import check_resolution
from caltest.auditing.groups import read_groups
from caltest.auditing.options import Options
from caltest.auditing.plan import MOST_FOR_KERNEL, MOST_HYPOTHESES, form_of, make_plan
from caltest.data import Rows
from caltest.laws import Classes
from caltest.lenses import through

LENSES = ("canonical", "top_label", "classwise")


def planned(
    probs, groups=None, lenses=LENSES, statistics=None, tolerance=None, min_rows=50, intersections=1
):
    options = Options.of(
        lenses=lenses,
        statistics=statistics,
        tolerance=tolerance,
        min_rows=min_rows,
        intersections=intersections,
    )
    return make_plan(Rows(np.asarray(probs)), read_groups(groups, len(probs)), options)


def names(plan):
    return [(look.key, statistic.name) for look, statistic in plan.hypotheses]


# ------------------------------------------------------------------ groups


def values_of(groups, n):
    return [(each.column, each.values) for each in read_groups(groups, n)]


def test_containers():
    column = ["b", "a", "b"]
    expected = [("region", ("a", "b"))]
    assert values_of(pd.DataFrame({"region": column}), 3) == expected
    assert values_of(pl.DataFrame({"region": column}), 3) == expected
    assert values_of({"region": column}, 3) == expected
    assert values_of({"region": np.array(column)}, 3) == expected
    assert values_of(pd.Series(column, name="region"), 3) == expected
    assert values_of(pl.Series("region", column), 3) == expected
    for unnamed in (column, np.array(column), pd.Series(column), pl.Series(column), tuple(column)):
        assert values_of(unnamed, 3) == [("group", ("a", "b"))]
    assert values_of(pd.Series(pd.Categorical(column), name="region"), 3) == expected
    assert values_of(pd.DataFrame({0: [1, 2], "x": [True, False]}), 2) == [
        ("0", ("1", "2")),
        ("x", ("False", "True")),
    ]
    assert read_groups(None, 3) == ()


def test_rows_of_groups():
    (grouping,) = read_groups([2, 10, 2, 1, 10], 5)
    assert grouping.values == ("1", "2", "10")
    assert [rows.tolist() for rows in grouping.rows()] == [[3], [0, 2], [1, 4]]


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        ([1.0, 2.5, float("nan")], ("1", "2.5", "(missing)")),
        ([None, "x", "x"], ("x", "(missing)")),
        ([pd.NA, pd.NaT, "x"], ("x", "(missing)")),
        (["", "  ", "x"], ("(empty)", "x")),
        (["", "(empty)", "x"], ("((empty))", "(empty)", "x")),
        ([None, "(missing)", "x"], ("(missing)", "x", "((missing))")),
        ([True, False, True], ("False", "True")),
        ([1, "1", 1.0], ("1",)),
        (["a\nb", "a  b", "a b"], ("a\nb", "a  b", "a b")),
        (["c\x1b[31m", "c\x00[31m", "c\ufffd[31m"], ("c\x00[31m", "c\x1b[31m", "c\ufffd[31m")),
        (["👩‍💻", '<script>alert("x")</script>', "\u202eevil"], None),
        ([pd.Timestamp("2024-01-02"), "2024-01-02T00:00", None], ("2024-01-02", "(missing)")),
    ],
)
def test_values_as_text(cells, values):
    (grouping,) = read_groups({"g": cells}, 3)
    assert sorted(np.concatenate(grouping.rows()).tolist()) == [0, 1, 2]
    if values is not None:
        assert grouping.values == values
    else:
        assert set(grouping.values) <= {*map(str, cells), "(missing)"}
    (same,) = read_groups(pd.DataFrame({"g": pd.Series(cells, dtype=object)}), 3)
    assert same.values == grouping.values


GROUP_ERRORS = [
    ({"g": [1, 2]}, "column 'g' of groups has 2 entries for 3 rows"),
    (["a", "b"], "column 'group' of groups has 2 entries for 3 rows"),
    (np.zeros((3, 2)), "groups is a table without column names; give a data frame or a dict"),
    ([["a"], ["b"], ["c"]], "a table without column names"),
    ("region", "groups is of type str; give a data frame, a dict of columns"),
    ({"g": "abc"}, "column 'g' is of type str"),
    ({"g": 3}, "column 'g' is of type int"),
    ({}, "groups has no column"),
    ({"1": [1, 2, 3], 1: [1, 2, 3]}, "two columns of groups have one name"),
    (pd.DataFrame([[1, 2]] * 3, columns=["a", "a"]), "two columns of one name"),
    (pl.DataFrame({"a": [1, 2, 3]}).lazy(), "groups is of type LazyFrame"),
]


@pytest.mark.parametrize(("groups", "message"), GROUP_ERRORS)
def test_wrong_groups(groups, message):
    with pytest.raises(InputError, match=message):
        caltest.audit(dirichlet(3, 3, 0), [0, 1, 2], groups=groups)


def test_too_many_values_are_refused():
    with pytest.raises(InputError, match="leave it out, or merge values"):
        read_groups({"name": [f"n{k}" for k in range(1500)]}, 1500)


# ------------------------------------------------------------------ what is looked at


def test_all_lenses_and_groups():
    plan = planned(dirichlet(200, 3, 0), {"g": ["a"] * 100 + ["b"] * 100})
    per_place = [
        ("canonical", "skce_uq"),
        ("canonical", "ecd"),
        ("top_label", "ks"),
        ("top_label", "ecd"),
        ("top_label", "citl"),
        *[(f"class:{k}", s) for k in range(3) for s in ("ks", "ecd", "citl")],
    ]
    assert names(plan) == [
        ((lens, column, value), statistic)
        for column, value in (("", ""), ("g", "a"), ("g", "b"))
        for lens, statistic in per_place
    ]
    assert plan.skipped == {}
    assert plan.columns == ("g",)


def test_two_classes_are_looked_at_once():
    """The one probability says all; the top label and a class are looked at if they are asked for."""
    vector = [(("canonical", "", ""), name) for name in ("skce_uq", "ecd", "ks", "citl")]
    plan = planned(dirichlet(100, 2, 0))
    assert names(plan) == vector
    assert plan.skipped == {}
    both = planned(dirichlet(100, 2, 0), lenses=("canonical", "top_label"))
    assert names(both) == [*vector, (("top_label", "", ""), "ks"), (("top_label", "", ""), "citl")]
    for lenses in ("top_label", ("canonical", "top_label")):
        asked = planned(dirichlet(100, 2, 0), lenses=lenses, statistics={"top_label": "ecd"})
        assert (("top_label", "", ""), "ecd") in names(asked)
    without = planned(
        dirichlet(100, 2, 0), lenses=("canonical", "top_label"), statistics={"canonical": "ks"}
    )
    assert (("top_label", "", ""), "ecd") in names(without)
    twice = planned(dirichlet(100, 2, 0), lenses=("canonical", "classwise"))
    assert [each.what for each in twice.skipped] == ["each class by itself"]
    alone = planned(dirichlet(100, 2, 0), lenses="classwise")
    assert names(alone) == [(("class:1", "", ""), name) for name in ("ks", "ecd", "citl")]


def test_small_groups_are_named():
    sizes = {"big": 60, "mid": 49, "one": 1}
    plan = planned(dirichlet(110, 3, 0), {"g": [k for k, v in sizes.items() for _ in range(v)]})
    assert [(s.what, s.rows, s.reason) for s in [*plan.skipped][:2]] == [
        ("g = mid", 49, "fewer than 50 rows"),
        ("g = one", 1, "fewer than 50 rows"),
    ]
    assert {look.group.value for look in plan.looks if look.group} == {"big"}
    assert len(planned(dirichlet(110, 3, 0), {"g": ["a"] * 110}, min_rows=1).looks) == 5
    (alone,) = planned(dirichlet(110, 3, 0), {"g": ["a"] * 110}).skipped
    assert "one value 'a'" in alone.reason


def test_hundreds_of_small_groups_stay_readable():
    plan = planned(dirichlet(3000, 3, 0), [f"g{k % 300:03}" for k in range(3000)])
    assert len(plan.skipped) == 21
    assert [*plan.skipped][-1].what == "280 more groups of group"
    assert sum(each.rows for each in plan.skipped) == 3000
    every = planned(dirichlet(3000, 3, 0), [f"g{k % 300:03}" for k in range(3000)], min_rows=10)
    assert len({look.group for look in every.looks if look.group}) == 300


def test_rare_classes_are_counted():
    probs = np.full((100, 4), 1e-4)
    probs[:, 0] = 1.0 - 3e-4
    probs[:50, :2] = 0.4999
    plan = planned(probs, {"g": ["a"] * 50 + ["b"] * 50})
    assert [s.what for s in plan.skipped] == [
        "2 of 4 classes by themselves",
        "6 of 8 pairs of a class and a group",
    ]
    looked = [key[0] for key, _ in names(plan) if key[0].startswith("class") and not key[1]]
    assert looked == ["class:0"] * 3 + ["class:1"] * 3


def test_caps_drop_pairs_of_class_and_group_first():
    n, m = 40_000, 60
    probs = np.random.default_rng(0).dirichlet(np.ones(m), n)
    plan = planned(probs, {"g": [f"g{k % 40}" for k in range(n)]}, statistics=("ks", "ecd"))
    assert len(plan.hypotheses) <= MOST_HYPOTHESES
    assert len(plan.hypotheses) > MOST_HYPOTHESES - 2
    (dropped,) = [s for s in plan.skipped if "pairs of a class and a group" in s.what]
    assert "at most 3,000 hypotheses" in dropped.reason
    assert len({look.scope.label for look in plan.looks if look.group is None}) == m + 2
    tops = [look for look in plan.looks if look.group and look.scope.label == "top_label"]
    assert len(tops) == 40
    cells = [look for look in plan.looks if look.group and look.scope.column is not None]
    assert int(dropped.what.split()[0].replace(",", "")) == m * 40 - len(cells)


def test_a_thousand_classes():
    plan = planned(np.random.default_rng(0).dirichlet(np.full(1000, 0.3), 400))
    assert len(plan.looks) == 2
    assert [s.what for s in plan.skipped] == ["1,000 of 1,000 classes by themselves"]


def test_very_many_rows_leave_out_the_kernel_statistic():
    n = MOST_FOR_KERNEL + 2
    probs = np.tile(dirichlet(50, 3, 0), (n // 50 + 1, 1))[:n]
    plan = planned(probs, lenses="canonical")
    assert names(plan) == [(("canonical", "", ""), "ecd")]
    assert next(iter(plan.skipped)).what == "'skce_uq' where rows are more than 100,000"
    parts = planned(probs, {"g": np.arange(n) % 2}, lenses="canonical")
    assert len(parts.skipped) == 1
    assert [name for _, name in names(parts)] == ["ecd"] + ["skce_uq", "ecd"] * 2
    asked = planned(probs, lenses="canonical", statistics="skce_uq")
    assert names(asked) == [(("canonical", "", ""), "skce_uq")]


def test_the_kernel_of_many_rows_is_of_low_rank():
    probs = dirichlet(5001, 10, 0)
    form = form_of(*planned(probs, lenses="canonical").hypotheses[0], Rows(probs))
    assert form.features.shape == (5001, 256)


def test_statistics_by_name_object_function_and_lens():
    def gap(probs, labels):
        return 0.0

    probs = dirichlet(100, 3, 0)
    one = planned(probs, lenses=("canonical", "top_label"), statistics=["brier", gap])
    assert [name for _, name in names(one)] == ["brier", "gap"] * 2
    some = planned(
        probs,
        lenses=("canonical", "top_label"),
        statistics={"top_label": caltest.statistics.Kuiper(), "canonical": ["ecd", "brier"]},
    )
    assert [name for _, name in names(some)] == ["ecd", "brier", "kuiper"]
    half = planned(probs, lenses=("canonical", "top_label"), statistics={"top_label": "ks"})
    assert [name for _, name in names(half)] == ["skce_uq", "ecd", "ks"]
    fitting = planned(probs, statistics="ks")
    assert {key[0] for key, _ in names(fitting)} == {"top_label", "class:0", "class:1", "class:2"}
    assert next(iter(fitting.skipped)).what == "the lens 'canonical'"


def test_other_lenses():
    plan = planned(dirichlet(100, 5, 0), lenses=["top:2", caltest.lenses.Sorted()])
    assert [look.event for look in plan.looks] == ["the label is among the top 2", None]


def test_with_a_tolerance_one_probability_at_a_time():
    plan = planned(dirichlet(100, 3, 0), tolerance=0.0)
    assert {name for _, name in names(plan)} == {"scan"}
    assert len(plan.looks) == 4
    assert next(iter(plan.skipped)).reason == "a tolerance is about one probability"


def test_class_names_are_no_columns():
    """Names that look like other columns' numbers are still names."""
    rows = Rows(Classes(dirichlet(100, 3, 0), ("2", "0", "1")))
    plan = make_plan(rows, (), Options.of(lenses="classwise", statistics="ks"))
    for column, look in enumerate(plan.looks):
        sample = look.sample(np.arange(100) % 3)
        assert np.array_equal(sample.rows.probs[:, 1], rows.probs[:, column])
        assert sample.labels.sum() == ((np.arange(100) % 3) == column).sum()


def test_looks_are_what_the_lens_shows():
    probs = np.vstack([dirichlet(30, 4, 0, 0.05), np.eye(4)])
    whole = caltest.data.sample(probs, np.arange(34) % 4)
    rows = np.array([1, 5, 33])
    for name in ("canonical", "top_label", "top:2", "sorted", "classwise"):
        for scope in [look.scope for look in planned(probs, lenses=name, min_rows=1).looks]:
            seen = through(whole, scope.lens)[0]
            part = scope.look(None, rows).sample(whole.labels)
            assert part.rows.probs == pytest.approx(seen.rows.probs[rows], rel=1e-13)
            assert part.labels.tolist() == seen.labels[rows].tolist()


def test_groups_of_one_row_are_skipped():
    probs, labels = dirichlet(60, 3, 0), np.arange(60) % 3
    options = {"groups": ["a"] * 59 + ["b"], "min_rows": 1, "n_resamples": 99, "rng": 0}
    audit = caltest.audit(probs, labels, **options)
    assert next((s.what, s.rows, s.reason) for s in audit.skipped) == (
        "group = b",
        1,
        "fewer than 2 rows",
    )
    with pytest.raises(InputError, match="probs has 1 row; give 2 or more"):
        caltest.audit(probs[:1], labels[:1], n_resamples=99)


def test_labels_of_columns_and_values_may_be_the_same():
    """ "a = b" of column "a = b"… one label, two groups."""
    groups = {"a": ["b = c"] * 60 + ["d"] * 40, "a = b": ["c"] * 40 + ["d"] * 60}
    plan = planned(dirichlet(100, 3, 0), groups, statistics="ecd", min_rows=1)
    seen = [look.group for look in plan.looks if look.group]
    assert len({(group.column, group.value) for group in seen}) == 4
    assert [group.column for group in seen] == sorted(group.column for group in seen)


def test_a_cap_on_work_drops_pairs_of_class_and_group_only(monkeypatch):
    probs, groups = dirichlet(400, 3, 0), ["a", "b"] * 200
    rows, read = Rows(probs), read_groups(groups, 400)
    overall = 400 * (2 + 3 + 3 * 3) + 2 * 200 * 5  # rows times hypotheses, but for pairs
    cell = 200 * 3
    monkeypatch.setattr("caltest.auditing.plan.MOST_WORK", 100.0 * (overall + 4 * cell))

    def pairs(options, n_draws):
        plan = make_plan(rows, read, options, n_draws)
        return [look for look in plan.looks if look.group and look.scope.column is not None], plan

    default = Options.of(intersections=1)
    few, plan = pairs(default, 99)
    assert len(few) == 4
    assert next(iter(plan.skipped)).what.startswith("2 pairs of a class and a group")
    assert "ask for lenses='classwise' by itself" in next(iter(plan.skipped)).reason
    assert (
        len(pairs(default, 9)[0])
        == len(pairs(Options.of(lenses=("classwise",), intersections=1), 9999)[0])
        == 6
    )
    none, plan = pairs(default, 9999)
    assert none == []
    assert len(plan.looks) == 5 + 4


# ------------------------------------------------------------------ bounds


def test_whose_error_is_bounded(monkeypatch):
    sizes = np.repeat([f"g{k:02}" for k in range(40)], np.arange(10, 50))
    probs = np.random.default_rng(0).dirichlet(np.arange(1.0, 13.0), len(sizes))
    plan = planned(probs, sizes, statistics="ecd", min_rows=10)
    chosen, n_draws = bounded_looks(plan.looks, 0.05)
    assert n_draws == 2 * 20 * len(chosen) - 1
    assert chosen[0].key == ("top_label", "", "")
    assert [look.group.value for look in chosen[1:31]] == [f"g{39 - k}" for k in range(30)]
    assert {look.scope.label for look in chosen[1:31]} == {"top_label"}
    assert [look.scope.column for look in chosen[31:]] == list(range(11, 1, -1))
    assert set(chosen) == set(bounded_looks(reversed(plan.looks), 0.05)[0])
    two, _ = bounded_looks(planned(dirichlet(100, 2, 0), ["a", "b"] * 50).looks, 0.05)
    assert [look.key for look in two] == [
        ("canonical", "", ""),
        ("canonical", "group", "a"),
        ("canonical", "group", "b"),
    ]
    assert bounded_looks(planned(dirichlet(100, 3, 0), lenses="canonical").looks, 0.05) == ((), 0)
    monkeypatch.setattr("caltest.auditing.audits._MOST_BOUNDING", 499 * 3 * 6200.0)
    assert [look.key[0] for look in bounded_looks(plan.looks, 0.05)[0]] == [
        "top_label",
        "class:11",
        "class:10",
    ]
    monkeypatch.setattr("caltest.auditing.audits._MOST_FOR_ONE", 1.0)
    monkeypatch.setattr("caltest.auditing.audits._MOST_BOUNDING", 1.0)
    assert bounded_looks(plan.looks, 0.05) == ((), 0)


# ------------------------------------------------------------------ refusals


ERRORS = [
    ({"alpha": 1.0}, "alpha is 1.0; give a level between 0 and 1"),
    ({"alpha": True}, "alpha is True"),
    ({"n_resamples": 0}, "n_resamples is 0"),
    ({"n_resamples": 10**9}, "give at most 10,000,000"),
    ({"min_rows": 0}, "min_rows is 0"),
    ({"correction": "bonferoni"}, "there is no correction 'bonferoni'"),
    ({"correction": "westfall_young", "tolerance": 0.1}, "cannot adjust jointly"),
    ({"tolerance": 2.0}, "tolerance is 2.0"),
    ({"tolerance": 0.1, "statistics": "ecd"}, "'ecd' is not monotone in the labels"),
    ({"lenses": ()}, "lenses holds nothing"),
    ({"lenses": None}, "lenses is None; give names such as 'canonical', 'top_label', 'classwise', or"),
    ({"lenses": 3}, "lenses is 3; give names"),
    ({"lenses": ("top_lable",)}, "did you mean 'top_label'"),
    ({"lenses": (None,)}, "lenses holds None"),
    ({"statistics": ()}, "statistics is empty"),
    ({"statistics": ["kss"]}, "did you mean 'ks'"),
    ({"statistics": {"top_lable": "ks"}}, "no lens among those asked for 'top_lable'"),
    ({"statistics": "ks", "lenses": "canonical"}, "there is nothing to test: the lens 'canonical'"),
    ({"tolerance": 0.1, "lenses": "canonical"}, "there is nothing to test"),
    ({"rng": "x"}, "rng is 'x'"),
    ({"n_jobs": 0}, "n_jobs is 0"),
]


@pytest.mark.parametrize(("options", "message"), ERRORS, ids=[str(o) for o, _ in ERRORS])
def test_wrong_options(options, message):
    with pytest.raises(InputError, match=message):
        caltest.audit(dirichlet(60, 3, 0), np.arange(60) % 3, **options)


def test_a_statistic_that_does_not_fit_says_where():
    with pytest.raises(InputError, match="through the lens 'top_label' in group = b, "):
        caltest.audit(
            np.r_[dirichlet(60, 2, 0), np.full((60, 2), 0.5)],
            np.arange(120) % 2,
            groups=["a"] * 60 + ["b"] * 60,
            lenses="top_label",
            statistics=refusing(),
            n_resamples=99,
        )


def refusing():
    class Refusing(caltest.statistics.ECD):
        def given(self, predictions):
            if (predictions.probs == 0.5).all():
                raise InputError("all rows say one half.")
            return super().given(predictions)

    return Refusing()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("alternatives", "correction", "alpha", "needed"),
    [
        (["greater"], "westfall_young", 0.05, 19),
        (["greater"] * 100, "westfall_young", 0.05, 19),
        (["two-sided", "greater"], "westfall_young", 0.05, 39),
        (["greater"] * 10, "holm", 0.05, 199),
        (["two-sided"] * 10, "bonferroni", 0.01, 1999),
        (["two-sided"] * 10, "fdr_bh", 0.05, 399),
        (["greater"], "holm", 0.05, 19),
    ],
)
def test_resolution(alternatives, correction, alpha, needed):
    check_resolution(alternatives, correction, alpha, needed)
    with pytest.raises(InputError, match=f"give at least {needed:,}"):
        check_resolution(alternatives, correction, alpha, needed - 1)


def test_refused_before_any_work(monkeypatch):
    monkeypatch.setattr("caltest.auditing.audits.draw_all", None)
    probs = dirichlet(100, 3, 0)
    with pytest.raises(InputError, match=r"n_resamples is 38, .*give at least 39"):
        caltest.audit(probs, labels_from(probs, np.random.default_rng(0)), n_resamples=38)
    with pytest.raises(InputError, match="with any number of resamples"):
        check_resolution(["greater"], "holm", 1e-9, 99)
