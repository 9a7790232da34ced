"""The same data in any container, file, type or order give the same numbers, or are refused."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import caltest
from caltest import InputError
from caltest.auditing.groups import read_groups
from caltest.data import sample
from caltest.files import read_with_groups

N = 90
NAMES = ("ant", "bee", "cat")
_RNG = np.random.default_rng(0)
#: Multiples of 1/64, that are the same in every type of numbers, and as they are written.
PROBS = _RNG.multinomial(64, [0.5, 0.3, 0.2], N) / 64
COLUMNS = {
    "label": _RNG.integers(0, 3, N),
    "weight": _RNG.integers(1, 9, N) / 4,
    "patient": _RNG.integers(1, 20, N),
    "age": np.arange(N) % 45,
    "site": _RNG.integers(1, 4, N),
}
GROUPS = ("age", "site")


def facts(found, groups):
    """All that numbers are made of, whatever the order of the columns."""
    rows = found.rows
    order = np.argsort(rows.classes) if rows.classes else np.arange(3)
    labels = np.argsort(order)[found.labels]
    read = [(each.values, each.member.tolist()) for each in read_groups(groups, N)]
    of = [rows.probs[:, order], labels, rows.weights, rows.clusters]
    return *(each.tolist() for each in of), read


def facts_of(probs, columns):
    apart = {"weights": columns["weight"], "clusters": columns["patient"]}
    return facts(sample(probs, columns["label"], **apart), {name: columns[name] for name in GROUPS})


EXPECTED = facts_of(PROBS, COLUMNS)


class Labelled:
    """What is looked at in an array of xarray."""

    def __init__(self, values, dims, coords, name=None):
        self.values, self.dims, self.name = np.asarray(values), dims, name
        self.coords = {each: np.asarray(of) for each, of in coords.items()}

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype)

    def __len__(self):
        return len(self.values)


def real(*given, **named):
    return pytest.importorskip("xarray").DataArray(*given, **named)


#: By container, how a table with names and a column are made.
CONTAINERS = {
    "list": (lambda p, _: p.tolist(), lambda v, _: v.tolist()),
    "numpy": (lambda p, _: np.asfortranarray(p), lambda v, _: v),
    "pandas": (
        lambda p, names: pd.DataFrame(p, columns=names),
        lambda v, name: pd.Series(v, name=name),
    ),
    "pandas of arrow": (
        lambda p, names: pd.DataFrame(p, columns=names).convert_dtypes(dtype_backend="pyarrow"),
        lambda v, name: pd.Series(v, name=name).convert_dtypes(dtype_backend="pyarrow"),
    ),
    "polars": (
        lambda p, names: pl.DataFrame(p, list(names)),
        lambda v, name: pl.Series(name, v.tolist()),
    ),
    "pyarrow": (
        lambda p, names: pa.table(list(p.T), list(names)),
        lambda v, _: pa.chunked_array([v[:40].tolist(), v[40:].tolist()]),
    ),
    "xarray-like": (
        lambda p, names: Labelled(p, ("row", "class"), {"class": names}),
        lambda v, name: Labelled(v, ("row",), {"row": np.arange(len(v))}, name),
    ),
    "xarray": (
        lambda p, names: real(p, dims=("row", "class"), coords={"class": list(names)}),
        lambda v, name: real(v, dims="row", coords={"row": np.arange(len(v))}, name=name),
    ),
}
#: Ways to write whole numbers, all of which name the same clusters and groups.
WRITTEN = {
    "int": np.int64,
    "float": np.float32,
    "text": str,
    "text of floats": lambda k: f"{k}.0",
    "decimal": Decimal,
    "mixed": lambda k: (k, float(k), f"{k}", f"{k}.0", Decimal(k))[k % 5],
}


def as_written(values, write):
    cells = [write(each) for each in values.tolist()]
    return np.array(cells) if isinstance(cells[0], np.generic) else np.array(cells, dtype=object)


QUICK = [("list", "mixed"), ("numpy", "text of floats"), ("pandas", "decimal"), ("pyarrow", "int")]
QUICK += [("polars", "float"), ("pandas of arrow", "text"), ("xarray-like", "float"), ("xarray", "int")]
EVERY = [(container, kind) for container in CONTAINERS for kind in WRITTEN]


@pytest.mark.parametrize(
    ("container", "kind"),
    [pytest.param(*each, marks=[] if each in QUICK else pytest.mark.slow) for each in EVERY],
)
def test_containers_and_types(container, kind):
    if kind == "mixed" and container.split()[-1] in ("polars", "pyarrow", "arrow"):
        pytest.skip("columns have one type there")
    table, column = CONTAINERS[container]
    columns = {name: column(values, name) for name, values in COLUMNS.items()}
    for name in ("patient", *GROUPS):
        columns[name] = column(as_written(COLUMNS[name], WRITTEN[kind]), name)
    assert (
        facts_of(table(PROBS, [0, 1, 2] if "xarray" in container else list("012")), columns) == EXPECTED
    )
    if container in ("list", "numpy"):
        return
    turned, order = np.array(NAMES), [2, 0, 1]
    columns["label"] = column(turned[COLUMNS["label"]].astype(object), "label")
    assert facts_of(table(PROBS[:, order], list(turned[order])), columns) == EXPECTED
    columns["label"] = column(COLUMNS["label"], "label")
    assert (
        facts_of(table(PROBS[:, order].astype(np.float32), [str(k) for k in order]), columns)
        == EXPECTED
    )


def test_the_order_of_rows():
    order = np.random.default_rng(1).permutation(N)
    probs, label, weights, clusters, read = EXPECTED
    found = facts_of(PROBS[order], {name: values[order] for name, values in COLUMNS.items()})
    assert found[0] == [probs[k] for k in order]
    assert found[1] == [label[k] for k in order]
    assert found[2] == [weights[k] for k in order]
    assert len(set(zip(found[3], (clusters[k] for k in order), strict=True))) == len(set(clusters))
    assert found[4] == [(names, [member[k] for k in order]) for names, member in read]


def by_pandas(values, index):
    return (pd.Series if np.ndim(values) == 1 else pd.DataFrame)(values, index)


def by_xarray(values, index, array=Labelled):
    return array(values, dims=("row", "class")[: np.ndim(values)], coords={"row": index})


ROWS = np.array([f"r{k:02}" for k in range(N)])
TURNED = ROWS[::-1]


@pytest.mark.parametrize("indexed", [by_pandas, by_xarray, lambda *of: by_xarray(*of, array=real)])
def test_rows_in_another_order_are_refused(indexed):
    p, y = indexed(PROBS, ROWS), COLUMNS["label"]
    age = COLUMNS["age"]
    assert sample(p, indexed(y, ROWS)).labels.tolist() == y.tolist()
    for call, name in [
        (lambda each: sample(p, each), "labels"),
        (lambda each: sample(p, y, weights=each), "weights"),
        (lambda each: sample(p, y, clusters=each), "clusters"),
        (lambda each: caltest.audit(p, y, groups={"age": each}), "groups"),
        (lambda each: caltest.compare({"one": p, "other": indexed(PROBS, TURNED)}, y), "other"),
    ]:
        with pytest.raises(InputError, match=f"differ: row 0 .* is 'r00' in .* and 'r89' in {name}"):
            call(indexed(age if name in ("weights", "clusters", "groups") else y, TURNED))
    if indexed is not by_pandas:
        with pytest.raises(
            InputError, match=r"coordinates of the rows of probs and labels.* or give \.val"
        ):
            sample(p, by_pandas(y, TURNED))
        assert sample(p, Labelled(y, ("row",), {})).labels.tolist() == y.tolist()  # by their places


# ------------------------------------------------------------------ files


WRITERS = {
    "csv": lambda frame, path: frame.to_csv(path, index=False),
    "parquet": lambda frame, path: frame.to_parquet(path),
    "arrow": lambda frame, path: frame.to_feather(path, compression="uncompressed"),
    "feather": lambda frame, path: frame.to_feather(path, compression="uncompressed"),
    "jsonl": lambda frame, path: frame.to_json(path, orient="records", lines=True),
}
ORDERS = {"as it is": list(range(8)), "turned": [7, 2, 5, 0, 1, 6, 3, 4]}


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("parts", ["one", "ints and floats", "floats and ints"])
@pytest.mark.parametrize("kind", WRITERS)
def test_files(kind, parts, order, tmp_path):
    frame = pd.DataFrame(PROBS, columns=NAMES).assign(**COLUMNS)
    frame["label"] = np.array(NAMES)[frame.label]
    frame = frame.iloc[:, ORDERS[order]]
    whole = ["patient", *GROUPS]
    path = tmp_path / f"rows.{kind}"
    if parts == "one":
        WRITERS[kind](frame, path)
    else:
        path.mkdir()
        types = [np.int64, np.float64][:: 1 if parts == "ints and floats" else -1]
        for part, dtype in enumerate(types):
            some = frame.iloc[45 * part : 45 * (part + 1)].reset_index(drop=True)
            WRITERS[kind](some.astype(dict.fromkeys(whole, dtype)), path / f"{part}.{kind}")
    roles = {"weights": "weight", "clusters": "patient", "groups": GROUPS}
    assert facts(*read_with_groups(path, **roles)) == EXPECTED


def test_arrays_in_files(tmp_path):
    for number, kind in enumerate((np.float64, np.float32, np.float16)):
        columns = {name: each.astype(kind) for name, each in COLUMNS.items()}
        np.savez(tmp_path / f"{number}.npz", probs=PROBS.astype(kind), **columns)
        path, roles = tmp_path / f"{number}.npz", {"weights": "weight", "clusters": "patient"}
        assert facts(*read_with_groups(path, groups=GROUPS, **roles)) == EXPECTED
