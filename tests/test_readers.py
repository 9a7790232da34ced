"""The same data in files of any kind, type or order give the same numbers."""

import numpy as np
import pandas as pd
import pytest

from caltest.auditing.groups import read_groups
from caltest.data import sample
from caltest.files import read_with_groups

N = 90
NAMES = ("ant", "bee", "cat")
_RNG = np.random.default_rng(0)
#: Multiples of 1/64, that are the same in every type of numbers, and as they are written.
PROBS = _RNG.multinomial(64, [0.5, 0.3, 0.2], N) / 64
COLUMNS = {
    "label": _RNG.integers(0, 3, N), "weight": _RNG.integers(1, 9, N) / 4,
    "patient": _RNG.integers(1, 20, N), "age": np.arange(N) % 45, "site": _RNG.integers(1, 4, N),
}  # fmt: skip
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


def test_the_order_of_rows():
    order = np.random.default_rng(1).permutation(N)
    probs, label, weights, clusters, read = EXPECTED
    found = facts_of(PROBS[order], {name: values[order] for name, values in COLUMNS.items()})
    assert found[0] == [probs[k] for k in order]
    assert found[1] == [label[k] for k in order]
    assert found[2] == [weights[k] for k in order]
    assert len(set(zip(found[3], (clusters[k] for k in order), strict=True))) == len(set(clusters))
    assert found[4] == [(names, [member[k] for k in order]) for names, member in read]


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
