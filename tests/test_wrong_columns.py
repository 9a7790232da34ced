"""Wrong weights, clusters and sampling rates, one table; each is refused at every door alike."""

import re
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from support import command, dirichlet, labels_from

import caltest
from caltest import InputError
from caltest.data import sample
from caltest.files import read, scan

ROWS = 4600  # more than a block of a file
PROBS = dirichlet(ROWS, 3, 2)
LABELS = labels_from(PROBS, np.random.default_rng(3))
ONES, CODES = np.ones(ROWS), np.arange(ROWS) % 60
NAMES = ["cat", "dog", "eel"]


def but(values, at, value):
    changed = np.array(values, dtype=object if isinstance(value, str | None) else None)
    changed[at] = value
    return changed


#: Columns by what they are given as, and what is said of them.
WRONG = {
    "negative": ({"weights": but(ONES, 4500, -1.0)}, r"weights has -1 in row 4500"),
    "infinite": ({"weights": but(ONES, 4500, np.inf)}, r"weights.* inf.* row 4500"),
    "all 0": ({"weights": 0 * ONES}, "all are 0"),
    "one": ({"weights": but(0 * ONES, 3, 3.0)}, "all but one are 0"),
    "nearly all": ({"weights": but(ONES, 4599, 1e160)}, "one is mo(re than 1e6|…)0 times every other"),
    "words": ({"weights": np.array(NAMES)[LABELS]}, "weights.*(text|not a number|not numbers)"),
    "missing": ({"clusters": but(CODES.astype(str), 4500, None)}, "clusters has missing.* row 4500"),
    "one cluster": ({"clusters": np.full(ROWS, "x")}, "clusters is 'x' for every row"),
}


def of_arrays(path, given):
    return sample(PROBS, LABELS, **{name: values.tolist() for name, values in given.items()})


def of_pandas(path, given):
    frame = pd.DataFrame(PROBS, columns=NAMES)
    columns = {name: pd.Series(values) for name, values in given.items()}
    return sample(frame, pd.Series(np.array(NAMES)[LABELS]), **columns)


def of_polars(path, given):
    frame = pl.DataFrame(PROBS, schema=NAMES)
    columns = {name: pl.Series(values.tolist()) for name, values in given.items()}
    return sample(frame, pl.Series(np.array(NAMES)[LABELS]), **columns)


def table(given):
    frame = pd.DataFrame(PROBS, columns=NAMES).assign(label=np.array(NAMES)[LABELS])
    return frame.assign(**{f"own {name}": values for name, values in given.items()})


def of_file(path, given):
    if path.suffix == ".csv":
        table(given).to_csv(path, index=False)
    else:
        table(given).to_parquet(path, row_group_size=1000)
    options = {name: f"own {name}" for name in given}
    said = []
    for reader in (read, scan):
        with pytest.raises(InputError) as raised:
            reader(path, label="label", columns=NAMES, **options)
        said.append(str(raised.value))
    assert said[0].startswith(path.name)
    asked = [part for name in given for part in (f"--{name}", f"own {name}")]
    rest = ["--statistic", "brier", "--columns", ",".join(NAMES)]
    shown = command("estimate", str(path), *rest, *asked)
    assert shown.exit_code == 2
    said.append(" ".join(shown.output.split()))
    raise InputError(" | ".join(said))


DOORS = {
    "arrays": (of_arrays, None), "pandas": (of_pandas, None), "polars": (of_polars, None),
    "csv": (of_file, "rows.csv"), "parquet": (of_file, "rows.parquet"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("case", WRONG)
def test_wrong_values_are_found_where_they_are(case, door, tmp_path):
    given, says = WRONG[case]
    call, name = DOORS[door]
    with pytest.raises(InputError) as raised:
        call(tmp_path / (name or ""), given)
    said = str(raised.value).split(" | ")
    assert len(said) == (3 if name else 1)
    for each in said:
        assert re.search(says, each), each


#: Of arrays alone: a file has a column of one number for every row.
SHAPES = {
    "too few": ({"weights": [1.0, 2.0]}, "weights has 2 entries, and there are 3 rows"),
    "not a number": ({"weights": [1.0, 1.0, np.nan]}, "weights has nan in row 2"),
    "a table": ({"weights": np.ones((3, 2))}, r"weights has shape \(3, 2\)"),
    "few clusters": ({"clusters": [1, 2]}, "clusters has 2 entries for 3 rows"),
    "many clusters": ({"clusters": [1, 2, 3, 4]}, "clusters has 4 entries for 3 rows"),
    "no column": ({"clusters": 5}, "clusters is 5; give one column"),
    "no mapping": ({"sampling_rates": 0.1}, "sampling_rates is 0.1"),
    "empty": ({"sampling_rates": {}}, "give the rate of every class"),
    "rate 0": ({"sampling_rates": {0: 0.0}}, "sampling rate of class 0 is 0"),
    "rate above 1": ({"sampling_rates": {0: 1.5}}, "above 0 and at most 1"),
    "rate of text": ({"sampling_rates": {0: "x"}}, "sampling rate of class 0 is 'x'"),
    "rate nan": ({"sampling_rates": {1: float("nan")}}, "sampling rate of class 1 is nan"),
    "no class": ({"sampling_rates": {2: 0.5}}, "for 2, which is not a class; .*column from 0 to 1"),
    "negative class": ({"sampling_rates": {-1: 0.5}}, "for -1, which is not a class"),
    "twice": ({"sampling_rates": {0: 0.5, "0": 0.5}}, "has two sampling rates"),
}


@pytest.mark.parametrize("case", SHAPES)
def test_wrong_shapes_are_refused(case):
    given, says = SHAPES[case]
    for call in (caltest.test, caltest.estimate):
        with pytest.raises(InputError, match=says):
            call([0.2, 0.5, 0.9], [0, 1, 1], "brier", **given)


#: Names of columns that cannot be what they are given as.
COLUMNS = {
    "weights": {
        "own weight": "no column 'own weight' of weights (did you mean 'own weights'?)",
        "label": "'label' holds the labels, so it cannot be weights too",
    },
    "clusters": {
        "nobody": "there is no column 'nobody' of clusters; the columns are",
        "own cluster": "no column 'own cluster' of clusters (did you mean 'own clusters'?); the",
        "label": "the column 'label' holds the labels, so it cannot be clusters too",
        "cat": "given as a probability and as clusters",
        "own weights": "the column 'own weights' is given as clusters and as weights",
    },
}


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, names in COLUMNS.items() for name in names]
)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_wrong_columns_are_refused(kind, name, suffix, tmp_path):
    path, frame = tmp_path / f"rows{suffix}", table({"weights": ONES, "clusters": CODES}).head(60)
    (frame.to_parquet if suffix == ".parquet" else partial(frame.to_csv, index=False))(path)
    given = {"weights": "own weights"} | {kind: name}
    for reader in (read, scan):
        with pytest.raises(InputError, match=re.escape(COLUMNS[kind][name])):
            reader(path, label="label", columns=NAMES, **given)


def test_a_group_is_a_column_too(tmp_path):
    table({"clusters": CODES}).head(60).to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(InputError, match="no column 'nobody' to group by"):
        read(tmp_path / "rows.csv", groups=["nobody"], clusters="own clusters")
