"""Files that are not named by a path: behind URLs of other file systems, and by patterns."""

import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import command, dirichlet, labels_from

import caltest
from caltest import InputError, blocks
from caltest.files import read, scan

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")

PROBS = dirichlet(9000, 3, 0)
LABELS = labels_from(PROBS, np.random.default_rng(1))
TABLE = pa.table({**{f"c{k}": PROBS[:, k] for k in range(3)}, "label": LABELS})


@pytest.fixture(scope="module", params=["local", "url of local", "memory"])
def folder(request, tmp_path_factory):
    """The same files, on this machine and in a file system of fsspec's; what comes before a name."""
    system = fsspec.filesystem("memory" if request.param == "memory" else "file")
    place = "/places" if request.param == "memory" else str(tmp_path_factory.mktemp("places"))

    def write(name, write_to):
        content = io.BytesIO()
        write_to(content)
        system.makedirs(f"{place}/{name}".rpartition("/")[0], exist_ok=True)
        system.pipe_file(f"{place}/{name}", content.getvalue())

    for number, start in enumerate(range(0, 9000, 3300)):
        part = TABLE.slice(start, 3300)
        write(
            f"parts/day={number}/part-{number}.parquet",
            lambda out, part=part: pq.write_table(part, out, row_group_size=1000),
        )
        write(f"all/part-{number}.parquet", lambda out, part=part: pq.write_table(part, out))
    write("all/_SUCCESS", lambda out: None)
    write("rows.csv", lambda out: TABLE.to_pandas().to_csv(out, index=False))
    write("rows.npy", lambda out: np.save(out, np.column_stack([PROBS, LABELS])))
    write("rows.npz", lambda out: np.savez(out, probs=PROBS, y=LABELS))
    write("cut.parquet", lambda out: out.write(b"PAR1 and no more"))
    write("empty.parquet", lambda out: None)
    yield {"local": "", "url of local": "file://", "memory": "memory://"}[request.param] + place
    if request.param == "memory":
        system.rm("/places", recursive=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("all", None), ("all/*.parquet", None), ("all/part-[012].parquet", None),
        ("parts/day=*/part-*.parquet", None), ("rows.csv", None), ("rows.npy", -1),
        ("rows.npz", None),
    ],
)  # fmt: skip
def test_the_same_rows_from_everywhere(folder, name, label):
    path = f"{folder}/{name}"
    ways = [read(path, label)]
    if name != "rows.npz":
        ways.append(scan(path, label).load())
        assert [len(each.labels) for each in scan(path, label).samples(1, 3)] == [4096, 808]
    for found in ways:
        np.testing.assert_allclose(found.rows.probs, PROBS, atol=1e-12)
        np.testing.assert_array_equal(found.labels, LABELS)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_test_reads_them_where_they_are(folder, monkeypatch, jobs):
    if jobs > 1 and folder.startswith("memory"):
        pytest.skip("there all who open a file share one position in it")
    monkeypatch.setattr("caltest.testing.HELD_UP_TO", 5000)
    monkeypatch.setattr(blocks, "_MANY_ROWS", 5000)
    options = {"statistic": "ecd", "n_resamples": 39, "rng": 0}
    expected = caltest.test(PROBS, LABELS, **options)
    found = caltest.test(scan(f"{folder}/parts/*/*.parquet"), **options, n_jobs=jobs)
    assert found.pvalue == expected.pvalue
    assert np.array_equal(found.null_distribution, expected.null_distribution)


@pytest.mark.slow
def test_the_command_takes_them(folder):
    asked = ("--statistic", "ecd", "--seed", "0", "--resamples", "39", "--json")
    told = [
        json.loads(command("test", f"{folder}/{name}", *asked).stdout)
        for name in ("all", "all/*.parquet", "rows.csv")
    ]
    assert told[0]["pvalue"] == told[1]["pvalue"] == told[2]["pvalue"]
    assert told[1]["file"] == f"{folder}/all/*.parquet"
    assert command("bounds", f"{folder}/all/part-0.parquet", "--plot", "rows.txt").exit_code == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none.parquet", "none.parquet: there is no such file; check the path"),
        ("none-*.parquet", r"none-\*.parquet: no file matches this pattern"),
        ("none/*.parquet", "no file matches this pattern|there is no such file"),
        ("*", r"\*: besides .* the pattern matches"),
        ("parts", "parts: a block of rows .* this directory holds no such files"),
        ("cut.parquet", "cut.parquet: the file is not valid Parquet"),
        ("empty.parquet", "empty.parquet: the file is empty; write it again"),
    ],
)
def test_what_cannot_be_read_is_told_in_a_sentence(folder, name, message):
    for call in (read, scan):
        with pytest.raises(InputError, match=message) as caught:
            call(f"{folder}/{name}")
        assert "\n" not in str(caught.value)
    failed = command("test", f"{folder}/{name}")
    assert failed.exit_code == 2
    assert failed.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nosuch://a/b.csv", "b.csv: it cannot be reached: Protocol not known: nosuch; check the"),
        ("sftp://a/b.csv", "b.csv: it cannot be reached: .*paramiko"),
        ("s3:///b.csv", "b.csv: it cannot be reached: Missing bucket name in S3 URI"),
    ],
)
def test_file_systems_that_cannot_be_reached(url, message):
    for call in (read, scan):
        with pytest.raises(InputError, match=message):
            call(url)
    assert command("test", url).exit_code == 2


def test_a_name_with_wildcards_in_it_is_a_name(tmp_path):
    pq.write_table(TABLE.slice(0, 10), tmp_path / "a[1]*.parquet")
    pq.write_table(TABLE, tmp_path / "a1.parquet")
    assert len(read(tmp_path / "a[1]*.parquet").labels) == 10
    assert len(read(tmp_path / "a[1].parquet").labels) == 9000


def test_a_remote_file_that_is_written_to_while_it_is_read():
    system = fsspec.filesystem("memory")
    for rows in (9000, 8000):
        content = io.BytesIO()
        pq.write_table(TABLE.slice(0, rows), content)
        system.pipe_file("/places-changed/a.parquet", content.getvalue())
        if rows == 9000:
            stored = scan("memory://places-changed/a.parquet")
    with pytest.raises(InputError, match="there were 9000 rows when it was opened"):
        list(stored.samples())
    system.rm("/places-changed", recursive=True)
    with pytest.raises(InputError, match=r"a.parquet: there is no such file"):
        list(stored.samples())
