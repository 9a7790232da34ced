"""The same rows give the same number, however they are indexed, held and written, or are refused."""

import datetime
import inspect
from contextlib import suppress
from decimal import Decimal
from itertools import permutations
from pathlib import Path

import alignments as calls
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from alignments import CALLS, DATA, N
from fuzz_alignment import FORMS
from scipy import stats
from support import some_fast

import caltest
from caltest import InputError
from caltest.data import sample
from caltest.planning import pilot
from caltest.predictive import Members, Normal, Quantiles

ORDER = np.random.default_rng(1).permutation(N)
FEW = {"n_resamples": 99, "rng": 0, "min_rows": 5}
ROWS = {"probs", "labels", "predicted", "outcomes", "models", "weights", "clusters", "groups", "ids"}


# ------------------------------------------------------------------ the table of calls


def test_every_function_of_rows_is_called():
    text = Path(inspect.getfile(calls.numbers)).read_text()
    for name in caltest.__all__:
        of = getattr(caltest, name)
        if inspect.isfunction(of) and ROWS & {*inspect.signature(of).parameters}:
            assert f"caltest.{name}(" in text, name


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
def test_the_number_depends_on_the_rows_of_every_argument(call):
    for name, values in calls.parts_of(call).items():
        assert calls.numbers(call, {**calls.parts_of(call), name: values[ORDER]}) != calls.expected(
            call
        ), name


# ------------------------------------------------------------------ indexes and coordinates


def answered(call, parts):
    """Whether there is a number, which is that of plain arrays then; None if it is refused."""
    try:
        return calls.numbers(call, parts) == calls.expected(call)
    except InputError:
        return None


@pytest.mark.slow
@pytest.mark.parametrize("index", calls.INDEXES)
@pytest.mark.parametrize("container", ["pandas", "xarray"])
@pytest.mark.parametrize("call", CALLS)
def test_indexes_that_are_alike_change_nothing(call, container, index):
    if (container, index) == ("xarray", "two levels"):
        pytest.skip("coordinates of one level")
    parts = calls.parts_of(call)
    alike = {
        name: calls.CONTAINERS[container](name, each, calls.INDEXES[index])
        for name, each in parts.items()
    }
    assert answered(call, alike)


@pytest.mark.parametrize("index", some_fast(["text", "range", "dates", "twice"], "text"))
@pytest.mark.parametrize("container", some_fast(["pandas", "xarray"], "pandas"))
@pytest.mark.parametrize("call", CALLS)
def test_rows_in_another_order_are_refused_or_matched(call, container, index):
    """Of any two arguments, where all others have no index."""
    make, labels, silent = calls.CONTAINERS[container], calls.INDEXES[index], set()
    for one, other in permutations(calls.parts_of(call), 2):
        parts = calls.parts_of(call)
        parts[one] = make(one, parts[one], labels)
        parts[other] = make(other, parts[other][ORDER], labels[ORDER])
        if answered(call, parts) is False:
            silent.add(frozenset((one, other)))
    assert not silent


@pytest.mark.slow
@pytest.mark.parametrize("index", ["text", "numbers", "dates"])
@pytest.mark.parametrize("call", CALLS)
def test_rows_correspond_by_position_where_an_index_is_the_default(call, index):
    for place in range(len(calls.parts_of(call))):
        parts = {
            name: calls.CONTAINERS["pandas"](
                name, each, calls.INDEXES[index if k == place else "range"]
            )
            for k, (name, each) in enumerate(calls.parts_of(call).items())
        }
        assert answered(call, parts), list(parts)[place]


@pytest.mark.parametrize("rows", [[2, 3, 4, 5], [9, 8, 7, 0], [7, 3, 5, 1], [3.0, 9.5, 8.5, 7.5]])
def test_a_default_index_that_another_contradicts_is_none(rows):
    """Rows that both indexes name stand at different places, as of two slices of one frame."""
    probs, labels = DATA["probs"][:4], DATA["labels"][:4]
    for one, other in ((range(4), rows), (rows, range(4))):
        with pytest.raises(InputError, match=r"indexes .* differ: row \d .* or call .reset_index"):
            sample(pd.DataFrame(probs, one), pd.Series(labels, other))


@pytest.mark.parametrize("call", CALLS)
def test_dimensions_in_another_order_are_matched_by_name_or_refused(call):
    parts = {
        name: calls.CONTAINERS["xarray"](name, each, None)
        for name, each in calls.parts_of(call).items()
    }
    for name in {*parts} & {*calls.COLUMNS}:
        for rest in (parts, calls.parts_of(call)):
            assert answered(call, {**rest, name: parts[name].transpose()}) is not False, name


# ------------------------------------------------------------------ containers and spellings

QUICK = [("list", "mixed"), ("pandas", "decimal")]
EVERY = [(container, kind) for container in calls.CONTAINERS for kind in calls.WRITTEN]


@pytest.mark.parametrize(
    ("container", "kind"),
    [pytest.param(*each, marks=[] if each in QUICK else pytest.mark.slow) for each in EVERY],
)
def test_one_number_in_every_container_and_spelling(container, kind):
    if (container in calls.TYPED and kind == "mixed") or (
        container == "torch" and kind not in ("int", "float")
    ):
        pytest.skip("columns have one type there")
    for call in CALLS:
        parts = {name: calls.written(name, kind) for name in calls.parts_of(call)}
        held = {name: calls.CONTAINERS[container](name, each, None) for name, each in parts.items()}
        assert answered(call, held), call


DAY = datetime.date(2024, 1, 5)
NOON = datetime.datetime(2024, 1, 5, 12)
ONE = {
    "number": [1, 1.0, "1", "1.0", np.float32(1), Decimal(1), " 1", "+1", "1e+00"],
    "boolean": [True, "true", "TRUE", "True", np.True_, "True "],
    "date": [
        DAY, datetime.datetime(2024, 1, 5), pd.Timestamp(DAY), np.datetime64("2024-01-05"),
        "2024-01-05", "2024-01-05T00:00:00", "2024-01-05 00:00:00", np.datetime64("2024-01-05", "ns"),
    ],
    "million": [1_000_000, "1e+06", "1000000.0", 1e6, np.int64(10**6), Decimal("1E+6"), "1000000"],
    "tenth": [0.1, "0.10", "0.1", ".1", Decimal("0.10")],
    "spaces": ["a", " a ", "a\t", "\u00a0a"],
    "normal form": ["caf\u00e9", "cafe\u0301"],
    "bytes": ["a", b"a", np.bytes_(b"a"), np.str_("a")],
}  # fmt: skip
APART = {
    "codes": [7, "007", "07"], "a boolean and a number": [True, 1], "case": ["North", "north"],
    "inner spaces": ["New York", "NewYork"], "look-alikes": ["A", "\u0410"],
    "times of a day": [DAY, NOON], "numbers": [1, 10, 1.5, -1],
}  # fmt: skip


def told_apart(cells, by):
    """How many groups, clusters or ids these are: each of them is 30 rows."""
    column = np.repeat(np.array([*cells, None], dtype=object)[:-1], 30)
    p = np.random.default_rng(0).random(len(column))
    y = (np.arange(len(p)) % 2).astype(int)
    if by == "clusters":
        return sample([*p, 0.5], [*y, 1], clusters=[*column, "other"]).rows.n_clusters - 1
    if by == "groups":
        audit = caltest.audit(p, y, groups={"g": column}, statistics="citl", **FEW)
        return len({str(view.group) for view in audit.views if view.group}) or 1
    if by == "groups of a monitor":
        state = caltest.Monitor().update(p, y, groups={"g": column})
        return len({each["value"] for each in state.to_dict()["evidence"] if each["column"] == "g"})
    watched = caltest.Monitor()
    for cell in cells:
        try:
            watched.update([0.5], [None], ids=[cell])
        except InputError:  # a row that waits is called so
            continue
    return watched.state.waiting


DOORS = ("clusters", "groups", "groups of a monitor", "ids")


@pytest.mark.parametrize("by", DOORS)
@pytest.mark.parametrize("cells", ONE.values(), ids=ONE)
def test_a_value_is_one_however_it_is_written(cells, by):
    assert told_apart(cells, by) == 1


@pytest.mark.parametrize("by", DOORS)
@pytest.mark.parametrize("cells", APART.values(), ids=APART)
def test_other_values_stay_apart(cells, by):
    assert told_apart(cells, by) == len(cells)


COLUMNS_OF_DAYS = {
    "text": lambda days: days,
    "dates": lambda days: [datetime.date.fromisoformat(day) for day in days],
    "numpy": lambda days: np.array(days, "M8[ns]"),
    "pandas": lambda days: pd.Series(pd.to_datetime(days)),
    "categories": lambda days: pd.Categorical(days),
    "polars": lambda days: pl.Series(days).str.to_date(),
    "polars, with times": lambda days: pl.Series(days).str.to_datetime(),
    "pyarrow": lambda days: pa.array(days).cast(pa.date32()),
    "arrow in pandas": lambda days: pd.Series(days, dtype="timestamp[us][pyarrow]"),
    "index": lambda days: pd.DatetimeIndex(days),
}


def test_days_of_every_type_are_the_same_groups():
    p, y, days = DATA["p"], DATA["events"], [f"2024-01-0{1 + k % 2}" for k in range(N)]
    names = set()
    for column in COLUMNS_OF_DAYS.values():
        audit = caltest.audit(p, y, groups={"day": column(days)}, **FEW)
        names.add(frozenset(str(view.group) for view in audit.views))
    assert names == {frozenset({"None", "day = 2024-01-01", "day = 2024-01-02"})}


@pytest.mark.parametrize("kind", ["case", "inner spaces", "look-alikes"])
def test_names_that_look_alike_are_noted(kind):
    cells = np.repeat(np.array(APART[kind]), N // 2)
    pairs = [*range(N - 2), *APART[kind]]
    for result in (
        caltest.audit(DATA["p"], DATA["events"], groups={"g": cells}, **FEW),
        caltest.audit(DATA["p"], DATA["events"], clusters=pairs, **FEW),
        caltest.Monitor().update(DATA["p"], DATA["events"], groups={"g": cells}),
        caltest.plan(DATA["p"], groups={"g": cells}, materiality=0.1),
        caltest.compare({"a": DATA["p"], "b": 1 - DATA["p"]}, DATA["events"], groups={"g": cells}),
    ):
        told, found, _ = " ".join(str(result).split()).partition(", which differ by case")
        assert found
        assert all(f"'{name}'" in told for name in APART[kind])


# ------------------------------------------------------------------ names of classes and entries

CLASSES = ["cat", "dog", "owl"]
NAMED = {**FORMS, "capitals": str.capitalize, "spaces": " {} ".format}


def table(probs, names, form="bare", order=(0, 1, 2)):
    made = pd.DataFrame(probs[:, list(order)])
    made.columns = pd.Index([NAMED[form](names[k]) for k in order])
    return made


@pytest.mark.parametrize("order", list(permutations(range(3))))
@pytest.mark.parametrize("form", NAMED)
def test_columns_are_matched_by_name_in_any_order(form, order):
    probs, other, labels = DATA["probs"], DATA["other"], DATA["labels"]
    text, plain = np.array(CLASSES)[labels], caltest.estimate(probs, labels)
    own = table(probs, CLASSES, form, order)
    assert caltest.estimate(own, text) == pytest.approx(plain)
    if order == (0, 1, 2):
        assert caltest.estimate(own, labels, class_names=CLASSES) == pytest.approx(plain)
    else:  # of whole calls.numbers it is not said whose they are: the names' or the columns'
        with suppress(InputError):
            assert caltest.estimate(own, labels, class_names=CLASSES) == pytest.approx(plain)
    assert caltest.estimate(table(probs, "012", form, order), labels) == pytest.approx(plain)
    found = caltest.compare({"a": own, "b": table(other, CLASSES)}, text, "skce_uq")
    calls.expected = caltest.compare({"a": probs, "b": other}, labels, "skce_uq")
    assert found.values == pytest.approx(calls.expected.values)
    assert found.gaps[0].mean == pytest.approx(calls.expected.gaps[0].mean)


@pytest.mark.parametrize("form", NAMED)
@pytest.mark.parametrize("names", [["cat", "dog", "bat"], ["a", "b", "c"], ["dogs", "cats", "owls"]])
def test_other_names_are_refused(form, names):
    probs, labels = DATA["probs"], DATA["labels"]
    with pytest.raises(InputError):
        caltest.estimate(table(probs, names, form), labels, class_names=CLASSES)
    with pytest.raises(InputError):
        caltest.estimate(table(probs, names, form), np.array(CLASSES)[labels])
    with pytest.raises(InputError):
        caltest.compare({"a": table(probs, CLASSES), "b": table(probs, names, form)}, labels)


_RNG = np.random.default_rng(2)
VALUES, SEEN = _RNG.normal(size=(N, 9, 2)) * [1.0, 3.0], _RNG.normal(size=(N, 2)) * [1.0, 3.0]


@pytest.mark.parametrize("names", [["v", "u"], ["U", "V"], ["u", "w"], ["b", "a"]])
def test_entries_are_matched_by_name_or_refused(names):
    seen = pd.DataFrame(SEEN, columns=["u", "v"])
    given = pd.DataFrame(SEEN[:, ::-1] if names == ["v", "u"] else SEEN, columns=names)
    mean, sd = (
        pd.DataFrame(np.tile(each, (N, 1)), columns=["u", "v"]) for each in ([0, 1.0], [1, 3.0])
    )
    turned = (
        sd[["v", "u"]].set_axis(names, axis=1) if names == ["v", "u"] else sd.set_axis(names, axis=1)
    )
    for call in (
        lambda y, _: caltest.estimate(Members(VALUES, ["u", "v"]), y, "energy"),
        lambda y, _: caltest.estimate(Normal(mean, sd), y, "nees"),
        lambda _, spread: caltest.estimate(Normal(mean, spread), seen, "nees"),
    ):
        plain = call(seen, sd)
        try:
            assert call(given, turned) == pytest.approx(plain)
        except InputError:
            continue
        assert sorted(map(str.lower, names)) == ["u", "v"]


def test_parameters_are_matched_by_name_or_refused():
    draws, options = VALUES.swapaxes(0, 1), {"n_resamples": 99, "rng": 0}
    by_name = {"mu": draws[..., 0], "tau": draws[..., 1]}
    frame = pd.DataFrame(SEEN, columns=["mu", "tau"])

    def errors(*given, **named):
        audit = caltest.sbc(*given, **named, **options)
        entries = [each for each in audit.checks if each.view.lens.startswith("entry:")]
        return {(each.view.lens, each.statistic): each.value for each in entries}

    plain = errors(frame, by_name)
    assert plain == errors(frame, draws) == errors(SEEN, draws, names=["mu", "tau"])
    for given in (
        lambda: errors(frame[["tau", "mu"]], by_name),
        lambda: errors(frame, dict(reversed(by_name.items()))),
        lambda: errors(dict(frame[["tau", "mu"]]), by_name),
        lambda: errors(frame, draws, names=["tau", "mu"]),
        lambda: errors(frame, by_name, names=["tau", "mu"]),
        lambda: errors(frame, by_name, names=["a", "b"]),
    ):
        with suppress(InputError):
            assert given() == plain


# ------------------------------------------------------------------ what went astray before

P, Y, TURN = DATA["p"], DATA["events"], np.random.default_rng(3).permutation(N)
Q = np.sort(_RNG.normal(size=(N, 3)), axis=1)
D = pd.DataFrame({"1": P, "0": 1 - P})


def astray():
    """Yield what is to be refused, a name and a call each."""
    ids, draws = [f"r{k}" for k in range(N)], np.tile(P, (9, 1))
    number = pd.Series([stats.norm(each, 1.0) for each in P])[TURN]
    yield (
        "default index as text",
        lambda: sample(pd.Series(P, [*map(str, range(N))][::-1]), pd.Series(Y)),
    )
    frame = pd.DataFrame(Q, columns=["p5", "p50", "p95"])
    yield "quantiles", lambda: Quantiles([0.1, 0.5, 0.9], frame)
    yield "one column of 0", lambda: sample(pd.DataFrame({"prob_0": P}), Y, class_names=[0, 1])
    yield "one column no", lambda: sample(pd.Series(P, name="no"), np.where(Y == 1, "yes", "no"))
    two = {"a": pd.DataFrame({"dog": P}), "b": D.set_axis(["dog", "cat"], axis=1)}
    yield "models", lambda: caltest.compare(two, Y)
    yield "pilot", lambda: pilot(D, truth=D.set_axis(["a", "b"], axis=1))
    yield "laws", lambda: caltest.test(number, pd.Series(P), "bias")
    yield "simulations", lambda: caltest.sbc({"m": pd.Series(P)}, {"m": pd.DataFrame(draws)[TURN]})
    own = {"q": (pd.Series(P)[TURN], draws)}
    yield "quantity", lambda: caltest.sbc(pd.DataFrame({"m": P}), {"m": draws}, quantities=own)
    turned = pd.Series(Y, [f"r{k}" for k in TURN])
    yield "ids", lambda: caltest.Monitor().update(P, turned, ids=ids)
    yield "yes and no", lambda: caltest.Monitor().update(D.set_axis(["yes", "no"], axis=1), Y, ids=ids)


@pytest.mark.parametrize("call", [pytest.param(call, id=name) for name, call in astray()])
def test_what_went_astray_is_refused(call):
    with pytest.raises(InputError):
        call()


def test_numbers_in_names_count_with_ids_too():
    found = [caltest.Monitor().update(D, Y, **how).log_evalue for how in ({}, {"ids": range(N)})]
    assert found[0] == pytest.approx(found[1])


@pytest.mark.parametrize(
    ("cells", "count"),
    [
        (["7e400", "8e400"], 2),  # hashes
        (["12e4", "120000"], 2),
        ([None, "(missing)"], 2),
        (["2024-01-05T11:00+01:00", "2024-01-05 10:00Z"], 1),
        ([2**60, 2**60 + 1], 2),
    ],
)
def test_values_that_went_astray(cells, count):
    found = caltest.Monitor().update(P, Y, groups=(cells * N)[:N])
    assert len({each.value for each in found.evidence} - {None}) == count
