"""Members of ensembles from files and on the command line: the same as from Python."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from support import ran as run

import caltest
from caltest import InputError
from caltest.files import read, read_with_groups, scan
from caltest.predictive import Members

rng = np.random.default_rng(0)
N, L = 300, 9
CENTRE = rng.normal(size=N)
VALUES = CENTRE[:, None] + 0.7 * rng.normal(size=(N, L))
TRUTH = rng.normal(CENTRE)
LAW = Members(VALUES)
NAMES = [f"run_{k}" for k in range(L)]
MORE = {"run_truth": TRUTH, "origin": np.arange(N) // 4, "region": np.where(CENTRE > 0, "a", "b")}
ROWS = pd.DataFrame(VALUES, columns=NAMES).assign(**MORE)
STATED = ["--label", "run_truth", "--members", "run_"]
SUFFIXES = ["csv", "parquet", "npz"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mixed = ROWS[[*rng.permutation(ROWS.columns)]]  # members are in no order
    mixed.to_csv("runs.csv", index=False)
    mixed.to_parquet("runs.parquet")
    arrays = {name: np.array(each.tolist()) for name, each in MORE.items()}
    np.savez("runs.npz", run_=VALUES, **arrays)
    wider = {name: CENTRE + 1.3 * (ROWS[name] - CENTRE) for name in NAMES}
    ROWS.assign(**wider).to_csv("wide.csv", index=False)


def result_of(command, *arguments):
    how = {"audit": ["--seed", 1, "--json", "-"], "compare": ["--json"]}
    return json.loads(run(command, *arguments, *how.get(command, ["--seed", 1, "--json"])).stdout)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_test_of_a_file_is_that_of_its_members(suffix):
    for options, how in (([], {}), (["--clusters", "origin"], {"clusters": MORE["origin"]})):
        expected = caltest.test(LAW, TRUTH, "spread", rng=1, **how)
        found = result_of("test", f"runs.{suffix}", *STATED, "--statistic", "spread", *options)
        assert (found["statistic"], found["pvalue"]) == (expected.statistic, expected.pvalue)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_readers_and_one_pass(suffix):
    path, columns = f"runs.{suffix}", {"members": "run_"}
    for found in (
        read(path, "run_truth", columns=columns),
        read(path, "run_truth", columns={"members": NAMES}),
        read_with_groups(path, "run_truth", columns=columns, groups=["region"])[0],
        scan(path, "run_truth", columns=columns).load(),
    ):
        np.testing.assert_array_equal(np.sort(found.rows.law.values), np.sort(VALUES))
        np.testing.assert_array_equal(found.labels, TRUTH)
    (part,) = scan(path, "run_truth", columns=columns).samples()
    np.testing.assert_array_equal(part.rows.law.pool, np.sort(np.column_stack([VALUES, TRUTH])))


@pytest.mark.parametrize("suffix", SUFFIXES[:2])
@pytest.mark.parametrize(
    ("prefix", "own", "others"),
    [
        ("run_", ["run_1", "run_2"], ["run_id", "run_mean", "run_", "rerun_1", "run_1b", "run_-1"]),
        ("run_", ["run_01", "run_2"], ["run_1.5", "run_1_sd", "run_x1"]),
        ("m", ["m0", "m10"], ["mean", "m", "month"]),
        ("a.", ["a.1", "a.2"], ["ab1", "a.b"]),
        ("", ["1", "2"], ["x", "x1"]),
    ],
)
def test_members_are_numbered(prefix, own, others, suffix):
    if not prefix:
        prefix, own = "1", ["11", "12"]
    rows = pd.DataFrame({name: VALUES[:, k % L] for k, name in enumerate([*own, *others])})
    rows = rows.assign(y=TRUTH)
    rows.to_csv("own.csv", index=False)
    rows.to_parquet("own.parquet")
    found = read(f"own.{suffix}", columns={"members": prefix})
    np.testing.assert_array_equal(found.rows.law.values, rows[own].to_numpy())
    assert found.rows.notes[0] == f"Columns not read: {', '.join(map(repr, others))}."


@pytest.mark.parametrize("cells", ["x", True, pd.Timestamp("2024-01-05"), "2024-01-05", "1,5", "5%"])
def test_a_member_that_is_no_number_is_named(cells):
    ROWS.assign(run_99=cells).to_parquet("odd.parquet")
    with pytest.raises(InputError, match=r"odd\.parquet: column 'run_99' holds .* at row 0"):
        read("odd.parquet", "run_truth", columns={"members": "run_"})


@pytest.mark.slow
def test_estimate_audit_and_compare():
    found = json.loads(run("estimate", "runs.csv", *STATED, "--statistic", "crps", "--json").stdout)[
        "statistic"
    ]
    assert found == pytest.approx(caltest.estimate(LAW, TRUTH, "crps"), rel=1e-12)
    how = {"n_resamples": 199, "rng": 1}
    expected = caltest.audit(LAW, TRUTH, groups={"region": MORE["region"]}, **how)
    found = result_of("audit", "runs.csv", *STATED, "--group", "region", "--resamples", 199)
    assert found["pvalue"] == expected.pvalue
    wide = Members(CENTRE[:, None] + 1.3 * (VALUES - CENTRE[:, None]))
    compared = caltest.compare({"runs": LAW, "wide": wide}, TRUTH)
    found = result_of("compare", "runs.csv", "wide.csv", *STATED)
    assert [each["crps"] for each in found["errors"]] == [each.crps for each in compared.errors]
    means = ["--mean", "run_0", "--sd", "sd", "--label", "run_truth"]
    ROWS.assign(sd=2.0).to_csv("normal.csv", index=False)
    ROWS.assign(sd=1.0).to_parquet("normals.parquet")
    assert len(result_of("compare", "normal.csv", "normals.parquet", *means)["names"]) == 2


def test_a_single_member_and_vectors_in_an_archive():
    assert read("runs.csv", "run_truth", columns={"members": "run_0"}).rows.law.size == 1
    pairs, truth = rng.normal(size=(50, 4, 2)), rng.normal(size=(50, 2))
    np.savez("pairs.npz", draws=pairs, y=truth)
    found = read("pairs.npz", columns={"members": "draws"})
    expected = caltest.test(Members(pairs), truth, "energy", rng=1).pvalue
    assert caltest.test(found.rows, found.labels, "energy", rng=1).pvalue == expected


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            "--members q",
            "--members is 'q', and no column is called so with a number behind it, such as",
        ),
        ("--members run_ --mean run_0", "both --mean and --members are given; give one of them."),
        ("--members run_ --columns run_0", "--columns names probabilities of classes, and --members"),
        (
            "--members region",
            "column 'region' holds '(a|b)' at row 0 (counting from 0), which is not a",
        ),
        ("--members run_ --logits", "--logits is about probabilities, and the columns state"),
    ],
)
def test_wrong_options_are_a_sentence(options, said):
    found = run("test", "runs.csv", "--label", "run_truth", *options.split(), code=(2,)).stderr
    expected = re.escape(said).replace(r"\(a\|b\)", "(a|b)")
    assert re.match(rf"Error: (runs\.csv: )?{expected}", found), found
    assert found.count("\n") == 1


def test_wrong_numbers_and_wrong_columns():
    ROWS.assign(run_03=ROWS["run_3"]).to_parquet("wrong.parquet")
    twice = run("test", "wrong.parquet", *STATED, code=(2,)).stderr
    assert "columns 'run_3' and 'run_03' both state number 3; keep one of them." in twice
    ROWS.assign(run_3=ROWS["run_3"].where(ROWS.index != 7)).to_parquet("lacking.parquet")
    assert "Rows have 8 to 9 members" in run("test", "lacking.parquet", *STATED).stdout
    for columns in ({"members": 3}, {"members": ""}, {"members": []}):
        with pytest.raises(InputError, match=r"members is .*; give the name of a column"):
            read("runs.csv", "run_truth", columns=columns)
    differ = run("compare", "runs.csv", "other.csv", *STATED, code=(2,)).stderr
    assert "there is no such file" in differ
    ROWS.assign(run_truth=0.0).to_csv("other.csv", index=False)
    differ = run("compare", "runs.csv", "other.csv", *STATED, code=(2,)).stderr
    assert "the outcomes of runs.csv and other.csv differ, the first in row 0" in differ
