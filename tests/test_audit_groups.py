"""Groups of several columns at once, ranges of numbers, and what the classes of an audit are called."""

import math
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

import caltest
from caltest import InputError, auditing
from caltest.auditing.groups import (
    MISSING,
    MOST_NUMBERS,
    NO_NUMBER,
    crossed,
    distinct,
    large_enough,
    notes_on,
    read_groups,
)
from caltest.files import read_with_groups


@pytest.fixture(autouse=True)
def _without_bounds(monkeypatch):
    """Leave out what is not looked at, and most of the work."""
    monkeypatch.setattr("caltest.auditing.audits.bounds", lambda *_: {})


# ------------------------------------------------------------------ crossed


N = 1200
COLUMNS = {
    "sex": [["F", "M"][k % 2] for k in range(N)],
    "age": [["old", "young", "child"][k // 2 % 3] for k in range(N)],
    "site": [["north", "south"][k // 6 % 2] for k in range(N)],
}


def groups_of(columns, intersections, min_rows=50):
    """Groups by their labels, with their rows, and what is skipped."""
    read = read_groups(columns, len(next(iter(columns.values()))))
    found, skipped = [], []
    for each in read:
        large, small = large_enough(each, min_rows)
        found += large
        skipped += small
    cells, small = crossed(read, intersections, min_rows)
    found, twins = distinct([*found, *cells])
    return dict(found), [*skipped, *small, *twins]


def rows_of(columns, group):
    inside = [np.array(columns[each.column], dtype=object) == each.value for each in group.conditions]
    return np.flatnonzero(np.all(inside, axis=0)).tolist()


@pytest.mark.parametrize(("intersections", "count"), [(1, 7), (2, 7 + 16), (3, 7 + 16 + 12)])
def test_crossed_columns(intersections, count):
    found, skipped = groups_of(COLUMNS, intersections)
    assert len(found) == count
    assert skipped == []
    for group, rows in found.items():
        assert sorted(rows.tolist()) == rows_of(COLUMNS, group)
        assert [each.column for each in group.conditions] == sorted(
            (each.column for each in group.conditions), key=list(COLUMNS).index
        )


def test_an_audit_crosses_two_columns_by_default():
    p = np.tile(np.linspace(0.1, 0.9, 12), N // 12)
    labels = (np.random.default_rng(0).random(N) < p).astype(int)
    options = {"groups": COLUMNS, "statistics": "citl", "n_resamples": 99, "rng": 0}
    two = caltest.audit(p, labels, **options)
    assert len(two.views) == 1 + 7 + 16
    assert auditing.Group.of(sex="F", age="old") in {view.group for view in two.views}
    one = caltest.audit(p, labels, intersections=1, **options)
    assert len(one.views) == 1 + 7
    assert "intersections=1" in one.call
    assert "intersections" not in two.call
    assert len(two.rests) == 7 + 2 * 16


def test_the_order_of_the_columns_changes_no_group():
    turned = dict(reversed(COLUMNS.items()))
    one, other = (
        {frozenset(group.conditions): rows.tolist() for group, rows in groups_of(each, 3)[0].items()}
        for each in (COLUMNS, turned)
    )
    assert one == other


def test_a_column_inside_another_makes_no_group_twice():
    city = [["Bern", "Basel", "Lyon", "Nice"][k % 4] for k in range(N)]
    country = ["CH" if name in ("Bern", "Basel") else "F" for name in city]
    found, skipped = groups_of({"country": country, "city": city}, 2)
    assert [group.label for group in found] == [
        "country = CH", "country = F", "city = Basel", "city = Bern", "city = Lyon", "city = Nice",
    ]  # fmt: skip
    assert skipped == []
    three, _ = groups_of({"country": country, "city": city, "site": COLUMNS["site"]}, 3)
    assert all(len(group.conditions) < 3 for group in three)  # each has the rows of one with two
    assert len({tuple(rows.tolist()) for rows in three.values()}) == len(three)


def test_a_group_of_the_same_rows_is_left_out_and_named_once():
    sex = COLUMNS["sex"]
    coded = ["1" if each == "F" else "2" if k % 4 == 1 else "3" for k, each in enumerate(sex)]
    found, skipped = groups_of({"sex": sex, "age": COLUMNS["age"], "code": coded}, 2)
    assert len({tuple(rows.tolist()) for rows in found.values()}) == len(found)
    assert [(each.what, each.rows, each.reason) for each in skipped] == [
        ("code = 1", None, "it has the same rows as sex = F"),
        ("3 more groups", None, "each has the same rows as another one"),  # of F, by age
    ]


def test_a_group_that_the_audit_makes_gives_way_to_one_that_was_named():
    """Of two spreads one is that of a column: its rows are checked once, by the column's name."""
    rng = np.random.default_rng(11)
    mean, channel = (
        rng.uniform(50.0, 150.0, 600),
        np.array(["depot", "shop", "web"])[np.arange(600) % 3],
    )
    law = caltest.predictive.Normal(mean, sd=np.where(channel == "web", 8.0, 10.0))
    found = caltest.audit(
        law, rng.normal(mean, 10.0), groups={"channel": channel}, n_resamples=99, rng=1
    )
    twins = [each for each in found.skipped if "same rows" in each.reason]
    assert [str(each) for each in twins] == [
        str(auditing.Skipped("predicted spread = 21", None, "it has the same rows as channel = web"))
    ]
    groups = {view.group.label for view in found.views if view.group}
    assert "channel = web" in groups
    assert "predicted spread = 21" not in groups
    assert "predicted spread = 26" in groups  # of two channels
    assert found.summary().count("predicted spread = 21") == 1


def test_crossed_groups_of_few_rows_are_counted():
    small = {"a": ["x"] * 100 + ["y"] * 100, "b": ["u"] * 90 + ["v"] * 10 + ["u"] * 40 + ["v"] * 60}
    found, skipped = groups_of(small, 2, 50)
    pairs = [group.label for group in found if len(group.conditions) == 2]
    assert pairs == ["a = x, b = u", "a = y, b = v"]
    assert [(each.what, each.rows, each.reason) for each in skipped] == [
        ("2 of 4 groups by a × b", 50, "fewer than 50 rows each")
    ]
    assert len(groups_of(small, 2, 10)[0]) == 4 + 4
    one = {"a": ["x"] * 200, "b": small["b"]}
    assert [group.label for group in groups_of(one, 2, 10)[0]] == ["b = u", "b = v"]


# ------------------------------------------------------------------ ranges of numbers


def cut(cells):
    (found,) = read_groups({"x": cells}, len(cells))
    return found


def sizes(grouping):
    return dict(zip(grouping.values, map(len, grouping.rows()), strict=True))


def test_many_numbers_are_cut_at_their_quantiles():
    found = cut(list(range(18, 68)) * 4)
    assert sizes(found) == {
        "18 to 27": 40, "28 to 37": 40, "38 to 47": 40, "48 to 57": 40, "58 to 67": 40,
    }  # fmt: skip
    assert found.cut == 50
    (note,) = notes_on([found])
    assert note == (
        "Column 'x' has 50 different numbers, and was cut at its own quantiles into 5 ranges of about "
        "equally many rows; equal numbers stay together."
    )


def test_up_to_twenty_numbers_are_values_of_their_own():
    few, many = (cut([k % n for k in range(420)]) for n in (MOST_NUMBERS, MOST_NUMBERS + 1))
    assert (len(few.values), few.cut) == (20, 0)
    assert few.values[:3] == ("0", "1", "2")
    assert (len(many.values), many.cut) == (5, 21)
    assert notes_on([few]) == ()
    constant = cut([3.5] * 420)
    assert (constant.values, constant.cut) == (("3.5",), 0)


def test_equal_numbers_stay_together():
    found = cut([0] * 600 + list(range(1, 41)) * 10)
    assert sizes(found) == {"0": 600, "1 to 20": 200, "21 to 40": 200}
    assert "into 3 ranges of about equally many rows" in notes_on([found])[0]
    assert sizes(cut([*range(1, 41)] * 2 + [99] * 920)) == {"1 to 40": 80, "99": 920}


def test_missing_numbers_are_a_group_of_their_own():
    cells = [None if k % 7 == 0 else k for k in range(210)]
    frame = pd.DataFrame({"x": pd.array(cells, dtype="Int64")})
    for given in (
        {"x": cells},
        {"x": [float("nan") if each is None else each for each in cells]},
        frame,
        pd.DataFrame({"x": cells}),
        pl.DataFrame({"x": cells}),
        {"x": ["" if each is None else str(each) for each in cells]},
    ):
        (found,) = read_groups(given, 210)
        assert found.values[-1] == MISSING
        assert found.cut == 180
        assert list(sizes(found).values()) == [36] * 5 + [30]
    assert cut([None] * 50).values == (MISSING,)


@pytest.mark.parametrize(
    "write", [str, lambda k: f"{k}.25", lambda k: f"-{k + 1}", lambda k: f"{k}e-3", lambda k: f"+{k}"]
)
def test_text_that_is_numbers_is_cut(write):
    found = cut([write(k) for k in range(100)] * 2)
    assert found.cut == 100
    assert list(sizes(found).values()) == [40] * 5


@pytest.mark.parametrize(
    "write",
    [
        lambda k: f"{k:05}",  # a code
        lambda k: f"n{k}",
        lambda k: f"{k}-{k}",
        lambda k: f"2024-01-{k}",
        lambda k: f"{k},5",
        lambda k: "007" if k == 7 else str(k),  # codes too
        lambda k: f"{k}a" if k % 7 == 0 else str(k),  # of which more than one in ten is none
        lambda k: 10**400 + k,
        lambda k: pd.Timestamp("2024-01-01") + pd.Timedelta(days=k),
    ],
)
def test_what_is_no_number_is_not_cut(write):
    found = cut([write(k) for k in range(30)])
    assert (len(found.values), found.cut) == (30, 0)


ODD = {
    "NA": ("NA", MISSING),
    "null": (" Null", MISSING),
    "blank": ("", MISSING),
    "None": (None, MISSING),
    "nan": (math.nan, MISSING),
    "inf": (math.inf, NO_NUMBER),
    "inf as text": ("inf", NO_NUMBER),
    "True": (True, NO_NUMBER),
    "a dot": (".", NO_NUMBER),
    "5o": ("5o", NO_NUMBER),
}


@pytest.mark.parametrize("write", [int, float, str, Decimal, np.float32])
@pytest.mark.parametrize(("odd", "group"), ODD.values(), ids=ODD)
def test_a_few_entries_that_are_no_numbers_leave_the_others_numbers(odd, group, write):
    ages = [write(20 + k % 60) for k in range(600)]
    plain = cut(ages)
    assert plain.cut == 60
    found = cut([*ages[:17], odd, *ages[17:399], odd, *ages[399:]])
    assert found.values == (*plain.values, group)
    assert found.rows()[-1].tolist() == [17, 400]
    assert np.array_equal(np.delete(found.member, [17, 400]), plain.member)
    said = notes_on([found])[1:]
    if odd is None or odd == "" or odd != odd:
        assert said == ()
    else:
        assert said == (
            f"Column 'x' holds no number in 2 rows (the first is {odd!r} in row 17 (counting from 0)); "
            f"there the group is '{group}'.",
        )


def test_text_that_is_a_number_is_that_number_beside_numbers():
    ages = [20 + k % 60 for k in range(600)]
    mixed = cut([str(age) if k % 2 else age for k, age in enumerate(ages)])
    assert np.array_equal(mixed.member, cut(ages).member)
    few = cut([1, "1", 1.0, "1.0", Decimal("1.00"), np.float32(1), "2", "x", "007", "7", True, "True"])
    assert sizes(few) == {"1": 6, "2": 1, "007": 1, "7": 1, "True": 2, "x": 1}
    (note,) = few.notes
    assert note == "Column 'x' holds 1, and '1' as text: they count as one group."


@pytest.mark.slow
@pytest.mark.parametrize("bad", ["", "NA", "5o"])
def test_a_bad_cell_does_not_open_the_gate(bad, tmp_path):
    """Ages of which the oldest are 23 points wrong, and of which a few cells are no numbers."""
    rng = np.random.default_rng(0)
    ages, p = rng.integers(20, 80, 3000), rng.uniform(0.2, 0.7, 3000)
    y = (rng.random(3000) < p + 0.23 * (ages > 67)).astype(int)
    frame = pd.DataFrame({"p": p, "label": y, "age": ages.astype(object)})
    frame.loc[[5, 8], "age"] = bad
    options = {"statistics": "citl", "n_resamples": 99, "rng": 0}
    frame.to_csv(tmp_path / "a.csv", index=False)
    read, groups = read_with_groups(tmp_path / "a.csv", groups="age")
    for audit in (
        caltest.audit(p, y, groups=frame[["age"]], **options),
        caltest.audit(read.rows, read.labels, groups=groups, **options),
    ):
        assert audit.worst.group.label in ("age = 68 to 79", "age = 69 to 79")
        assert audit.unseen == {}


def test_columns_that_are_hardly_looked_at_are_said_first():
    rng = np.random.default_rng(0)
    p, y = np.tile([0.3, 0.6], 200), rng.integers(0, 2, 400)
    codes = [f"n{k % 60}" if k < 300 else "rest" for k in range(400)]
    audit = caltest.audit(p, y, groups={"site": codes, "one": ["x"] * 400}, n_resamples=99, rng=0)
    assert audit.unseen == {"site": 300}
    said = (
        "Column 'site': 300 of 400 rows are in groups too small to check; merge its values, or lower "
        "min_rows."
    )
    assert said in " ".join(audit.summary().split("What to do next")[0].split())
    assert said in caltest.report.to_markdown(audit).partition("###")[0].replace("\\", "")
    assert said in caltest.report.to_html(audit).partition("<section")[0].replace("&#39;", "'")
    assert audit.to_dict()["unseen"] == {"site": 300}
    half = caltest.audit(p, y, groups={"site": codes}, min_rows=5, n_resamples=99, rng=0)
    assert half.unseen == {}


def test_truths_are_two_values():
    assert cut([k % 3 == 0 for k in range(60)]).values == ("False", "True")
    assert cut(np.arange(60) % 3 == 0).values == ("False", "True")


def test_ends_of_ranges_are_told_apart():
    rng = np.random.default_rng(0)
    for values in (rng.random(500), 1000.0 + rng.random(500) / 1000.0, rng.normal(size=500) * 1e-9):
        found = cut(values)
        assert len({end for name in found.values for end in name.split(" to ")}) == 10
        assert list(sizes(found).values()) == [100] * 5
        for name, rows in zip(found.values, found.rows(), strict=True):
            low, high = map(float, name.split(" to "))
            assert values[rows].min() == pytest.approx(low, rel=1e-3)
            assert values[rows].max() == pytest.approx(high, rel=1e-3)


def test_numbers_of_every_kind_are_cut_alike():
    values = np.arange(100)
    for cells in (values, values.astype(np.float32), values.astype(np.int8), values.tolist()):
        assert cut(cells).values == ("0 to 19", "20 to 39", "40 to 59", "60 to 79", "80 to 99")
    assert cut(pd.Series(pd.Categorical(values))).cut == 100


# ------------------------------------------------------------------ names of classes


def readmissions(n=400):
    """Risks, labels as text, and as numbers; a model whose labels are turned round is found wrong."""
    p = np.tile(np.linspace(0.05, 0.65, 20), n // 20)
    events = (np.random.default_rng(2).random(n) < p).astype(int)
    return p, np.array(["home", "readmission"])[events], events


def audited(probs, labels, **options):
    return caltest.audit(probs, labels, statistics=("ks", "citl"), n_resamples=99, rng=0, **options)


def test_the_event_is_named():
    p, names, events = readmissions()
    assert audited(p, events).event == "class 1"
    given = {
        "event": audited(p, events, event="readmission"),
        "series": audited(pd.Series(p, name="readmission"), events),
        "polars": audited(pl.Series("readmission", p), events),
        "column": audited(pd.DataFrame({"readmission": p}), events),
        "table": audited(pd.DataFrame({"home": 1.0 - p, "readmission": p}), names),
        "class_names": audited(p, events, class_names=("home", "readmission")),
        "text labels": audited(p, names, class_names=["home", "readmission"]),
        "two columns": audited(np.c_[1.0 - p, p], names, class_names=["home", "readmission"]),
    }
    for audit in given.values():
        (view,) = audit.views
        assert audit.event == "readmission"
        assert view.event == "the label is 'readmission'"
        assert view.observed == events.mean()
        assert (audit.classes[1], view.class_index) == ("readmission", 1)
        assert not audit.rejected
        assert "the predicted probability of readmission" in str(audit)
    assert given["event"].classes == ("not readmission", "readmission")
    assert "event='readmission'" in given["event"].call
    turned = audited(p, names, class_names=["readmission", "home"])
    assert turned.event == "home"
    assert turned.rejected
    assert turned.views[0].observed == pytest.approx(1.0 - events.mean())


def test_an_event_named_twice():
    p, _, events = readmissions()
    assert audited(pd.Series(p, name="score"), events, event="readmission").event == "readmission"
    both = audited(p, events, event="readmission", class_names=("home", "back"))
    assert (both.event, both.classes) == ("readmission", ("home", "readmission"))


def test_classes_are_named():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), 300)
    labels = (probs.cumsum(axis=1) < rng.random((300, 1))).sum(axis=1)
    names = np.array(["cat", "dog", "eel"])
    for given in (labels, names[labels]):
        audit = caltest.audit(
            probs, given, class_names=names.tolist(), lenses="classwise", n_resamples=99, rng=0
        )
        assert audit.classes == ("cat", "dog", "eel")
        assert audit.event is None
        assert [view.lens for view in audit.views] == ["class:cat", "class:dog", "class:eel"]
        assert [view.observed for view in audit.views] == [(labels == k).mean() for k in range(3)]
        assert not audit.rejected


@pytest.mark.parametrize(
    ("m", "options", "message"),
    [
        (3, {"event": "x"}, "event is 'x', which names the one event of two classes, and there are 3"),
        (2, {"event": 3}, "event is 3; give its name"),
        (2, {"class_names": ["a"]}, "class_names has 1 name for 2 classes; give one for each"),
        (3, {"class_names": ["a", "b"]}, "class_names has 2 names for 3 classes; give one for each"),
        (3, {"class_names": ["a", "b", "a"]}, "give every class a name of its own"),
        (3, {"class_names": ["a", "b", ""]}, "give every class a name of its own"),
        (3, {"class_names": "abc"}, "class_names is 'abc'; give a list of names"),
        (3, {"class_names": 3}, "class_names is 3; give a list of names"),
    ],
)
def test_wrong_names(m, options, message):
    probs = np.random.default_rng(0).dirichlet(np.ones(m), 60)
    with pytest.raises(InputError, match=message):
        caltest.audit(probs, np.arange(60) % m, n_resamples=99, **options)
    one = probs[:, 1]
    if m == 2:
        with pytest.raises(InputError, match=message):
            caltest.audit(one, np.arange(60) % m, n_resamples=99, **options)


def test_a_set_has_no_order():
    probs = np.random.default_rng(0).random(60)
    with pytest.raises(InputError, match="groups is of type set; give a data frame"):
        caltest.audit(probs, np.arange(60) % 2, groups=set(range(60)), n_resamples=99)
