"""Files that are read a block of rows at a time: the same numbers as in memory, whatever the chunks."""

import json
import pickle

import numpy as np
import pytest
from support import command, dirichlet, labels_from, some_fast

import caltest
from caltest import InputError, _parallel, binning, blocks, testing
from caltest._parallel import Workers, added
from caltest.data import subsample
from caltest.files import formats, read, scan, scan_arrays
from caltest.statistics import (
    ACE,
    ECE,
    MCE,
    ClasswiseECE,
    DebiasedECE,
    Omnibus,
    SquaredECE,
    UnbiasedSKCE,
)

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

N, M = 10_000, 4


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch):
    """Take 9 000 rows for very many."""
    monkeypatch.setattr("caltest.forms.kernel_matrices.HELD_UP_TO", 9000)
    monkeypatch.setattr(testing, "HELD_UP_TO", 9000)
    monkeypatch.setattr(blocks, "_MANY_ROWS", 9000)


@pytest.fixture(scope="module")
def rows():
    probs = dirichlet(N, M, 3)
    return probs, labels_from(probs, np.random.default_rng(4))


@pytest.fixture(scope="module")
def stored(rows, tmp_path_factory):
    """The same rows in files of several kinds and chunkings."""
    folder = tmp_path_factory.mktemp("stored")
    table = pa.table({**{f"c{k}": rows[0][:, k] for k in range(M)}, "label": rows[1]})
    pq.write_table(table, folder / "one.parquet")
    pq.write_table(table, folder / "chunks.parquet", row_group_size=777)
    parts = folder / "parts"
    parts.mkdir()
    for number, start in enumerate(range(0, N, 3001)):
        pq.write_table(table.slice(start, 3001), parts / f"{number}.parquet")
    with pa.OSFile(str(folder / "one.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as out:
        out.write_table(table, max_chunksize=555)
    np.save(folder / "one.npy", np.column_stack(rows))
    return folder


def opened(stored):
    names = ("one.parquet", "chunks.parquet", "parts", "one.arrow")
    return [*(scan(stored / name) for name in names), scan(stored / "one.npy", label=-1)]


LENS = "top_label"
QUICK = ("--statistic", "ecd", "--seed", "0", "--resamples", "39", "--json")
STATISTICS = [
    ("ecd", None), ("log_score", LENS), ("brier", None), ("esce", LENS), ("citl", LENS),
    ("spiegelhalter", None), ("smooth_ece", LENS),
    (UnbiasedSKCE(approximation="nystrom", rank=9), None),
    (UnbiasedSKCE(approximation="fourier", rank=10), None), (ECE(), LENS), (MCE(distance="l2"), LENS),
    (ECE(distance="sqeuclidean"), LENS), (SquaredECE(binning.FromEdges([0, 0.5, 0.6, 1.0])), LENS),
    (DebiasedECE(), LENS), (ClasswiseECE(), None),
    pytest.param(Omnibus(), None, marks=pytest.mark.slow),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("statistic", "lens"), STATISTICS)
def test_the_same_number_as_in_memory(rows, stored, statistic, lens):
    """Of one of them from files of all kinds, and with two workers."""
    options = {"statistic": statistic, "lens": lens, "n_resamples": 70, "rng": 5}
    held = caltest.test(*rows, **options)
    sources = opened(stored) if statistic == "brier" else [scan(stored / "parts")]
    for source, jobs in zip(sources, (1, 2, 1, 1, 1), strict=False):
        found = caltest.test(source, **options, n_jobs=jobs)
        assert found.statistic == pytest.approx(held.statistic, rel=1e-9, abs=1e-15)
        assert found.null_distribution == pytest.approx(held.null_distribution, rel=1e-8, abs=1e-12)
        assert found.pvalue == held.pvalue
        assert [part.adjusted for part in found.parts] == [part.adjusted for part in held.parts]
        assert (found.n_samples, found.n_classes, found.lens) == (N, held.n_classes, held.lens)


@pytest.mark.parametrize("statistic", some_fast(["kuiper", "ks", ACE()], "kuiper"))
def test_what_is_looked_at_on_a_grid_comes_close(rows, stored, statistic):
    options = {"statistic": statistic, "n_resamples": 70, "rng": 5}
    held, *found = (caltest.test(*data, **options) for data in (rows, *zip(opened(stored))))
    for result in found:
        assert result.statistic == pytest.approx(held.statistic, rel=0.1)
        assert result.null_distribution == pytest.approx(held.null_distribution, rel=0.3)
        assert np.array_equal(result.null_distribution, found[0].null_distribution)


@pytest.mark.slow
def test_several_passes_give_the_numbers_of_one(rows, stored, monkeypatch):
    options = {"statistic": UnbiasedSKCE(approximation="nystrom", rank=9), "n_resamples": 70, "rng": 5}
    one = [caltest.test(*data, **options) for data in (rows, (scan(stored / "parts"),))]
    monkeypatch.setattr(blocks, "_MOST_SUMS", 64 * (9 * M + 1))
    several = [caltest.test(*data, **options) for data in (rows, (scan(stored / "parts"),))]
    for result in (*one, *several):
        assert np.array_equal(result.null_distribution, one[0].null_distribution)


def test_a_mapped_array_is_read_block_by_block(rows, tmp_path):
    np.save(tmp_path / "probs.npy", rows[0])
    mapped = np.load(tmp_path / "probs.npy", mmap_mode="r")
    one, other = (caltest.test(probs, rows[1], "ecd", rng=1) for probs in (mapped, rows[0]))
    assert one.pvalue == other.pvalue
    with pytest.raises(InputError, match=r"probs has 10000 rows and labels has 9999"):
        caltest.test(mapped, rows[1][:-1], "ecd")


def test_few_rows_are_read_at_once(rows, stored, monkeypatch):
    monkeypatch.setattr(testing, "HELD_UP_TO", N)
    found = caltest.test(scan(stored / "parts"), statistic="kuiper", rng=0)
    assert found.pvalue == caltest.test(*rows, "kuiper", rng=0).pvalue


@pytest.mark.parametrize(
    ("statistic", "lens"),
    [("mcb_brier", "class:0"), ("ece", None), (ECE(binning.MedianVariance(100)), LENS)],
)
def test_a_statistic_that_needs_all_rows_reads_them(rows, stored, monkeypatch, statistic, lens):
    options = {"statistic": statistic, "lens": lens, "n_resamples": 20, "rng": 0}
    found = caltest.test(scan(stored / "parts"), **options)
    assert found.pvalue == caltest.test(*rows, **options).pvalue
    monkeypatch.setattr(_parallel, "available", lambda: 1e5)
    with pytest.raises(InputError, match=r"a table of 10000 rows and 5 columns needs about 0.0016 GB"):
        caltest.test(scan(stored / "parts"), **options)


def test_impossible_labels_are_told_with_their_rows(rows, tmp_path):
    probs, labels = rows[0].copy(), rows[1].copy()
    probs[[5000, 9999]], labels[[5000, 9999]] = [0, 0.5, 0.5, 0], 0
    np.save(tmp_path / "rows.npy", np.column_stack([probs, labels]))
    found = caltest.test(scan(tmp_path / "rows.npy", label=-1), statistic="ecd", n_resamples=99, rng=0)
    assert found.statistic == np.inf
    assert any(x.startswith("In 2 of 10000 rows (counting from 0: 5000, 9999)") for x in found.warnings)


def test_a_glimpse_is_of_places():
    some = subsample(5000, 100)
    assert some[:5].tolist() == [4967, 410, 821, 2875, 4527]
    assert len(np.unique(some)) == 100
    assert some.mean() == pytest.approx(2500, abs=400)
    assert sorted(subsample(50, 100)) == list(range(50))
    assert subsample(2**20 + 5000, 2**21).max() == 2**20 + 4999
    share = np.mean(subsample(5000, 1000) % 10 != 0)
    assert share == pytest.approx(0.9, abs=0.04)  # equal rows are as frequent as among all


@pytest.mark.slow
def test_rows_that_are_all_equal():
    probs = np.tile([0.2, 0.8], (N, 1))
    labels = (np.random.default_rng(0).random(N) < 0.8).astype(int)
    assert 0.0 < caltest.test(probs, labels, n_resamples=19, rng=0).pvalue <= 1.0


def test_a_part_that_is_rounding_only_does_not_drown_the_others(tmp_path):
    """Uniform over subsets of the classes: no label moves the ECD, but by rounding."""
    rng = np.random.default_rng(0)
    probs = np.where(rng.random((N, 1)) < 0.5, [1 / 3, 1 / 3, 1 / 3], [0.5, 0.5, 0.0])
    labels = labels_from(probs, rng)
    np.save(tmp_path / "rows.npy", np.column_stack([probs, labels]))
    stored, held = (
        caltest.test(*data, n_resamples=99, rng=0)
        for data in ((scan(tmp_path / "rows.npy", label=-1),), (probs, labels))
    )
    assert stored.pvalue == held.pvalue < 1.0


def test_one_row_may_be_left_for_the_last_block(rows, tmp_path):
    for n in (4097, 8193):
        np.save(tmp_path / "rows.npy", np.column_stack(rows)[:n])
        assert len(scan(tmp_path / "rows.npy", label=-1).load().labels) == n


# ------------------------------------------------------------------ runs, and the order of sums


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["chunks.parquet", "parts", "one.arrow", "one.npy", "many.csv", "many.jsonl"]
)
def test_any_run_of_blocks_is_read_by_itself(rows, stored, tmp_path, monkeypatch, name):
    """From the part that it begins in, be that a row group, a batch, a file or a stretch of text."""
    monkeypatch.setattr(formats, "BLOCK", 70_000)
    folder = stored
    if name.startswith("many"):
        folder = tmp_path
        frame = pa.table({f"c{k}": rows[0][:, k] for k in range(M)} | {"label": rows[1]}).to_pandas()
        frame.to_csv(folder / "many.csv", index=False)
        frame.to_json(folder / "many.jsonl", orient="records", lines=True, double_precision=15)
    source = scan(folder / name, label=-1 if name.endswith("npy") else None)
    whole = list(source.samples())
    assert [len(each.labels) for each in whole] == [4096, 4096, N - 8192]
    for first in range(3):
        for last in range(first + 1, 4):
            run = list(pickle.loads(pickle.dumps(source)).samples(first, last))
            for one, other in zip(run, whole[first:last], strict=True):
                assert np.array_equal(one.rows.probs, other.rows.probs)
                assert np.array_equal(one.labels, other.labels)


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 63, 64, 65, 500, 513, 1200])
def test_sums_are_added_in_one_order(count):
    terms = np.random.default_rng(count).normal(size=count) * 10.0 ** (np.arange(count) % 9)
    whole = added(terms, np.add)
    assert whole == pytest.approx(terms.sum(), abs=1e-3)
    for size in (1, 8, 64):
        runs = [added(terms[start : start + size], np.add) for start in range(0, count, size)]
        assert added(runs, np.add) == whole


@pytest.mark.parametrize("grain", [1, 10**6])
@pytest.mark.parametrize("jobs", [1, 2, 5, 32])
def test_runs_of_all_sizes_give_the_same_bits(stored, monkeypatch, jobs, grain):
    """With rows so few a block that there are runs of 1, 8 and 64 blocks."""
    monkeypatch.setattr(blocks, "_LARGE_PART", grain - 1)
    sizes = {stop - start for start, stop in blocks.runs(4096 * 600, grain, Workers(jobs))}
    assert max(sizes) in (1, 8, 64)
    terms = [(np.float64(k) ** 0.3,) for k in range(600)]

    def run(first, last):
        return added([term for (term,) in terms[first:last]], np.add)

    tasks = blocks.runs(4096 * 600, grain, Workers(jobs))
    assert added(Workers(jobs).map(run, tasks), np.add) == added([term for (term,) in terms], np.add)


def test_a_mapped_array_is_sent_as_a_name(rows, tmp_path):
    np.save(tmp_path / "probs.npy", rows[0])
    mapped = np.load(tmp_path / "probs.npy", mmap_mode="r")
    for some in (mapped, mapped[1000:], mapped[::3, 1:]):
        packed = pickle.dumps(scan_arrays(some, rows[1][: len(some)].astype(np.uint8)))
        assert len(packed) < len(some) + 2000
        assert np.array_equal(pickle.loads(packed).probs, some)


# ------------------------------------------------------------------ wrong input


def test_an_error_says_in_which_row_it_is(rows, tmp_path):
    probs = rows[0].copy()
    probs[9000, 2] = np.nan
    np.save(tmp_path / "rows.npy", np.column_stack([probs, rows[1]]))
    source = scan(tmp_path / "rows.npy", label=-1)
    for statistic in ("ecd", "omnibus"):
        with pytest.raises(InputError, match=r"not finite: row 9000 \(counting from 0\)"):
            caltest.test(source, statistic=statistic)  # how many of all are wrong is not known


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none.parquet", "none.parquet: there is no such file"),
        ("empty", "empty: a block of rows .* this directory holds no such files; give another"),
        ("text.parquet", "text.parquet: the file is not valid"),
        ("short.parquet", "short.parquet: there are no rows"),
        ("text.npz", r"text.npz: a block .* and this is '.npz'; convert it"),
    ],
)
def test_files_that_cannot_be_scanned(tmp_path, name, message):
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.parquet").write_text("no parquet")
    (tmp_path / "text.npz").write_text("a,b,label\n")
    pq.write_table(pa.table({"a": pa.array([], pa.float64())}), tmp_path / "short.parquet")
    with pytest.raises(InputError, match=message):
        scan(tmp_path / name)


@pytest.mark.parametrize("other", [9000, 2 * N])
def test_a_file_that_is_written_to_while_it_is_read(rows, tmp_path, other):
    def write(n):
        some = np.resize(np.column_stack(rows), (n, M + 1))
        table = pa.table({f"c{k}": some[:, k] for k in range(M)} | {"label": some[:, M]})
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as out:
            out.write_table(table)

    path = tmp_path / "rows.arrow"
    write(N)
    source = scan(path)
    write(other)
    with pytest.raises(InputError, match="there were 10000 rows when it was opened"):
        caltest.test(source, statistic="ecd", n_resamples=19)


def test_directories_hold_files_of_one_kind_with_the_same_columns(tmp_path):
    table = pa.table({"a": [0.5, 0.5], "b": [0.5, 0.5], "label": [0, 1]})
    pq.write_table(table, tmp_path / "0.parquet")
    (tmp_path / "._0.parquet").write_text("what a system keeps")
    (tmp_path / "_SUCCESS").write_text("")
    assert scan(tmp_path).n_samples == 2
    pq.write_table(table.append_column("c", table["a"]), tmp_path / "1.parquet")
    with pytest.raises(InputError, match=r"1.parquet has the columns 'a', 'b', 'label', 'c'"):
        scan(tmp_path)
    (tmp_path / "1.parquet").rename(tmp_path / "1.csv")
    with pytest.raises(InputError, match=r"besides parquet files the directory holds '1.csv'"):
        scan(tmp_path)


def test_a_file_of_several_may_have_no_rows(tmp_path):
    table = pa.table({"a": [0.5, 0.4], "b": [0.5, 0.6], "label": ["a", "b"]})
    for name, some in (("0.arrow", table), ("1.arrow", table.slice(0, 0))):
        with pa.ipc.new_file(tmp_path / name, table.schema) as file:
            file.write_table(some)
    assert read(tmp_path).labels.tolist() == [0, 1]
    assert [each.labels.tolist() for each in scan(tmp_path).samples()] == [[0, 1]]


def test_what_cannot_be_asked(rows, stored):
    source = scan(stored / "parts")
    with pytest.raises(InputError, match="leave labels out"):
        caltest.test(source, rows[1])
    with pytest.raises(InputError, match="there are no labels; give the observed classes"):
        caltest.test(rows[0])
    with pytest.raises(InputError, match="measures one probability, and there are 4 classes"):
        caltest.test(source, statistic="citl", lens="sorted")


# ------------------------------------------------------------------ the command


def test_the_command_reads_files_and_directories(stored):
    told = [
        json.loads(command("test", stored / name, *QUICK, *options).stdout)
        for name, options in (("chunks.parquet", ()), ("parts", ()), ("one.npy", ("--label=-1",)))
    ]
    assert told[0]["pvalue"] == told[1]["pvalue"] == told[2]["pvalue"]


@pytest.mark.slow
def test_the_command_takes_kernels_of_low_rank(stored):
    asked = ("--approximation", "fourier", "--rank", "20", "--json", "--seed", "0")
    told = json.loads(command("test", stored / "parts", *asked).stdout)
    assert told["name"] == "skce_uq"
    assert told["parameters"]["rank"] == 20
    wrong = command("test", stored / "parts", "--statistic", "ecd", *asked)
    assert wrong.exit_code == 2
    assert "is for kernel statistics, and this is 'ecd'" in wrong.stderr
    wrong = command("test", stored / "parts", "--rank", "20")
    assert wrong.exit_code == 2


def test_reading_all_of_it_gives_what_reading_the_file_gives(stored):
    one, other = scan(stored / "chunks.parquet").load(), read(stored / "chunks.parquet")
    assert np.array_equal(one.rows.probs, other.rows.probs)
    assert np.array_equal(one.labels, other.labels)
    assert one.rows.classes == other.rows.classes
