"""Clusters in files: whole, a block at a time, by the commands, and columns that are none."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from support import command, dirichlet, labels_from, refused, some_fast

import caltest
from caltest import InputError, blocks, testing
from caltest.auditing.groups import read_groups
from caltest.clusters import Clusters
from caltest.data import sample
from caltest.files import read, read_with_groups, scan
from caltest.forms import ClusterSums
from caltest.lenses import through
from caltest.resampling import columns_of
from caltest.statistics import STATISTICS

ROWS = 8000
PROBS = dirichlet(ROWS, 3, 2)
LABELS = labels_from(PROBS, np.random.default_rng(3))
#: Rows of a cluster are all over the file.
CODES = np.random.default_rng(4).integers(0, 60, ROWS)
WEIGHTS = np.random.default_rng(5).exponential(size=ROWS) * (CODES != 7)
PATIENTS = np.array([f"patient {code:03}" for code in CODES])
NAMES = ["cat", "dog", "eel"]


def written(folder, rows=ROWS, kind="parquet", patients=PATIENTS):
    frame = pd.DataFrame(PROBS[:rows], columns=NAMES)
    frame["label"] = np.array(NAMES)[LABELS[:rows]]
    frame["survey"], frame["patient"] = WEIGHTS[:rows], patients[:rows]
    path = folder / f"rows.{kind}"
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_parquet(path, row_group_size=1000)
    return path


@pytest.fixture
def in_blocks(monkeypatch):
    """4000 rows are taken for very many."""
    monkeypatch.setattr(testing, "HELD_UP_TO", 4000)
    monkeypatch.setattr("caltest.forms.kernel_matrices.HELD_UP_TO", 4000)
    monkeypatch.setattr(blocks, "_MANY_ROWS", 4000)


def loads(monkeypatch):
    found = []
    load = caltest.files.Stored.load
    monkeypatch.setattr(
        caltest.files.Stored, "load", lambda *a, **k: (found.append(1), load(*a, **k))[1]
    )
    return found


@pytest.mark.slow
@pytest.mark.parametrize("weights", some_fast([None, "survey"], "survey"))
@pytest.mark.parametrize(
    "statistic", ["ecd", "log_score", "brier", "spiegelhalter", "esce", "citl", "ece", "smooth_ece"]
)
def test_one_pass_gives_the_numbers_of_memory(statistic, weights, tmp_path, monkeypatch, in_blocks):
    options = {"statistic": statistic, "n_resamples": 99, "rng": 5}
    if statistic in ("ece", "smooth_ece"):
        options["lens"] = "top_label"
    own = {"clusters": PATIENTS, "weights": None if weights is None else WEIGHTS}
    held = caltest.test(PROBS, LABELS, **own, **options)
    loaded = loads(monkeypatch)
    stored = scan(written(tmp_path), columns=NAMES, clusters="patient", weights=weights)
    found = caltest.test(stored, **options)
    assert not loaded
    assert stored.clusters == (60 if weights is None else 59)
    assert found.statistic == pytest.approx(held.statistic, rel=1e-9, abs=1e-14)
    assert found.null_distribution == pytest.approx(held.null_distribution, rel=1e-8, abs=1e-11)
    assert found.pvalue == held.pvalue
    assert found.parameters["clusters"] == held.parameters["clusters"]
    assert (found.null, found.guarantee) == ("cluster_signs", held.guarantee)
    assert "clusters" in found.summary()


@pytest.mark.slow
@pytest.mark.parametrize(("lens", "weights"), [(None, None), ("top_label", WEIGHTS[:2000])])
def test_sums_of_parts_are_those_of_the_whole(lens, weights):
    """Every statistic that can read rows in parts: two halves of the rows, and all of them."""
    n, given = 2000, {"weights": weights, "clusters": PATIENTS[:2000]}
    whole = sample(PROBS[:n], LABELS[:n], **given)
    whole = through(whole, lens)[0]
    rows, labels = whole.rows, whole.labels
    codes, looked = rows.clusters, 0
    clusters = Clusters(codes, 60, rows.weights)
    signs = np.random.default_rng(8).choice(np.array([-1, 1], np.int8), (30, 60))
    for name, of in STATISTICS.items():
        low_rank = name in ("skce_uq", "jkce", "skce_b")
        measure = of(approximation="nystrom") if low_rank else of()
        try:
            partwise = measure.fitted(replace(rows, part_of=rows.whole))
            forms = [column.form for column in columns_of(partwise.given(rows))]
        except InputError:  # it needs two classes, or all rows at once
            continue
        if len(forms) > 1:
            continue
        found = []
        for part in (slice(0, 800), slice(800, n)):
            some = replace(rows.take(np.arange(n)[part]), part_of=rows.whole)
            own = Clusters(codes[part], 60, some.weights)
            found.append(partwise.given(some).cluster_sums(labels[part], own))
        one, other = found
        sums = ClusterSums(*(a + b for a, b in zip(one, other, strict=True)))
        merged = forms[0].of_cluster_sums(sums, clusters.share_between).of_labels(signs)
        expected = forms[0].signed(labels, clusters).of_labels(signs)
        off = 5e-3 * expected.std() if low_rank else 1e-12  # features may be of single precision
        assert merged == pytest.approx(expected, rel=1e-8, abs=off), name
        looked += 1
    assert looked >= (8 if lens is None else 15)


GLIMPSED = ["ks", "kuiper", "ace", "ucme", "omnibus", "skce_uq", "jkce"]


@pytest.mark.slow
@pytest.mark.parametrize("statistic", some_fast(GLIMPSED, "ks", "skce_uq"))
def test_what_is_fitted_to_a_glimpse(statistic, tmp_path, monkeypatch):
    options = {"n_resamples": 199, "rng": 5}
    if statistic in ("skce_uq", "jkce"):
        measure = STATISTICS[statistic](approximation="nystrom")
    else:
        measure = statistic
    whole = caltest.test(PROBS, LABELS, measure, clusters=PATIENTS, **options)
    monkeypatch.setattr(testing, "HELD_UP_TO", 4000)
    monkeypatch.setattr("caltest.forms.kernel_matrices.HELD_UP_TO", 4000)
    loaded = loads(monkeypatch)
    stored = scan(written(tmp_path), columns=NAMES, clusters="patient")
    found = caltest.test(stored, None, measure, **options)
    assert not loaded
    if statistic == "omnibus":
        for one, other in zip(found.parts, whole.parts, strict=True):
            assert one.value == pytest.approx(other.value, rel=0.2, abs=1e-4)
    else:
        scale = float(np.std(whole.null_distribution))
        assert found.statistic == pytest.approx(whole.statistic, rel=0.1, abs=0.3 * scale)
    assert found.pvalue == pytest.approx(whole.pvalue, abs=0.25)


@pytest.mark.slow
@pytest.mark.parametrize("statistic", ["ecd", "ks", pytest.param("omnibus", marks=pytest.mark.slow)])
def test_neither_workers_nor_the_order_of_files_matter(statistic, tmp_path, in_blocks):
    path = written(tmp_path)
    options = {"statistic": statistic, "n_resamples": 39, "rng": 1}

    def run(**more):
        return caltest.test(scan(path, columns=NAMES, clusters="patient"), **options, **more).to_dict()

    assert run() == run(n_jobs=2)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_all_formats(kind, tmp_path, in_blocks):
    path = written(tmp_path, kind=kind)
    expected = caltest.test(PROBS, LABELS, "brier", clusters=CODES, n_resamples=39, rng=0)
    found = caltest.test(
        scan(path, columns=NAMES, clusters="patient"), None, "brier", n_resamples=39, rng=0
    )
    assert found.pvalue == expected.pvalue
    assert read(path, columns=NAMES, clusters="patient").rows.clusters.max() == 59
    assert scan(path, columns=NAMES, clusters="patient").load().rows.clusters.max() == 59
    sample, frame = read_with_groups(path, columns=NAMES, groups=["patient"], clusters="patient")
    assert sample.rows.clusters is not None
    assert list(frame) == ["patient"]


def test_other_statistics_are_read_into_memory(tmp_path, monkeypatch, in_blocks):
    stored = scan(written(tmp_path, 4500), columns=NAMES, clusters="patient")
    loaded = loads(monkeypatch)
    options = {"statistic": "scan", "lens": "top_label", "n_resamples": 19, "rng": 0}
    expected = caltest.test(PROBS[:4500], LABELS[:4500], clusters=CODES[:4500], **options)
    assert caltest.test(stored, **options).pvalue == expected.pvalue
    assert loaded
    exact = caltest.test(
        stored, None, "ecd", null=caltest.nulls.OnePerCluster(choices=2), n_resamples=19, rng=0
    )
    assert exact.guarantee == "exact"
    with pytest.raises(InputError, match="possible here: one_per_cluster"):
        caltest.test(stored, None, "mcb_brier", lens="top_label", rng=0)


def test_sums_that_do_not_fit(tmp_path, monkeypatch, in_blocks):
    def refuse(size, what, do):
        raise InputError(f"{what} take {size:.0f} bytes; {do}.")

    stored = scan(written(tmp_path), columns=NAMES, clusters="patient")
    monkeypatch.setattr(blocks, "check_fits", refuse)
    with pytest.raises(InputError, match=r"1 sums of each of 60 clusters take .*larger clusters"):
        caltest.test(stored, None, "ecd", rng=0)


def test_a_label_that_cannot_be(tmp_path, in_blocks):
    probs, labels = PROBS.copy(), LABELS.copy()
    probs[7000], labels[7000] = [0.0, 0.5, 0.5], 0
    frame = pd.DataFrame(probs, columns=NAMES).assign(label=np.array(NAMES)[labels], patient=PATIENTS)
    frame.to_parquet(tmp_path / "rows.parquet")
    found = caltest.test(
        scan(tmp_path / "rows.parquet", clusters="patient"), None, "ecd", n_resamples=39, rng=0
    )
    assert found.statistic == np.inf
    assert found.pvalue <= 2 / 40
    assert any("probability 0" in note for note in found.warnings)


# ------------------------------------------------------------------ columns


def test_one_cluster_alone_may_not_count(tmp_path):
    path = written(tmp_path, patients=np.where(CODES == 7, "a", "b"))
    with pytest.raises(InputError, match="one cluster alone have weights above 0"):
        scan(path, columns=NAMES, weights="survey", clusters="patient")


@pytest.mark.parametrize("word", ["NA", "nan", "None", "null", "<NA>", "N/A"])
def test_words_for_nothing_are_missing(word, tmp_path):
    patients = PATIENTS[:60].astype(object)
    patients[41] = word
    path = written(tmp_path, 60, kind="csv", patients=patients)
    for reader in (read, scan):
        with pytest.raises(InputError, match=rf"missing values, the first, '{word}', in row 41 "):
            reader(path, columns=NAMES, clusters="patient")


def test_whole_numbers_of_two_types_are_one_cluster(tmp_path):
    """As pandas writes them: where a cell is missing further down, 1 is 1.0."""
    (tmp_path / "rows").mkdir()
    frame = pd.DataFrame(PROBS[:80], columns=NAMES).assign(label=np.array(NAMES)[LABELS[:80]])
    numbers = np.arange(80) % 20
    for part, kind in enumerate((int, float)):
        rows = frame.iloc[40 * part : 40 * (part + 1)]
        rows = rows.assign(patient=numbers[:40].astype(kind), site=numbers[:40].astype(kind) % 3)
        rows.to_csv(tmp_path / "rows" / f"{part}.csv", index=False)
    assert scan(tmp_path / "rows", columns=NAMES, clusters="patient", groups="site").clusters == 20
    found, groups = read_with_groups(tmp_path / "rows", groups="site", clusters="patient")
    assert found.rows.clusters.tolist() == numbers.tolist()
    (sites,) = read_groups(groups, 80)
    assert sites.values == ("0", "1", "2")
    assert sites.member.tolist() == (numbers % 3).tolist()


def test_arrays_have_no_names(tmp_path):
    np.save(tmp_path / "rows.npy", np.column_stack([PROBS, LABELS]))
    for reader in (read, scan):
        with pytest.raises(InputError, match="no names, so there is no column 'patient'"):
            reader(tmp_path / "rows.npy", -1, clusters="patient")
    np.savez(tmp_path / "rows.npz", probs=PROBS[:60], labels=LABELS[:60], patient=PATIENTS[:60])
    found = read(tmp_path / "rows.npz", clusters="patient").rows.clusters
    assert found.max() == len(set(CODES[:60])) - 1


def test_the_command(tmp_path, in_blocks):
    path = written(tmp_path)
    rest = ["--columns", ",".join(NAMES), "--statistic", "ecd", "--resamples", "99", "--seed", "0"]
    shown = command("test", str(path), "--clusters", "patient", *rest, "--jobs", "1", "--json")
    expected = caltest.test(PROBS, LABELS, "ecd", clusters=CODES, n_resamples=99, rng=0)
    found = json.loads(shown.stdout)
    assert (found["pvalue"], found["parameters"]["clusters"]) == (expected.pvalue, 60)
    wrong = command("test", str(path), "--clusters", "nobody", *rest)
    assert wrong.exit_code == 2
    assert "no column 'nobody' of clusters" in " ".join(wrong.output.split())


@pytest.mark.parametrize(
    ("blocks", "days"), [("7d", 7), ("1w", 7), ("2 w", 14), ("12h", 0.5), ("1mo", None)]
)
def test_clusters_are_blocks_of_time(blocks, days, tmp_path):
    """Four weeks from a Monday on, read as a whole and in one pass."""
    time = pd.date_range("2024-01-15", periods=56, freq="12h") + pd.Timedelta(minutes=59)
    frame = pd.DataFrame(PROBS[:56], columns=NAMES).assign(label=LABELS[:56], time=time)
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path)
    found = read(path, clusters="time", blocks=blocks).rows.clusters
    since = (time - pd.Timestamp("2024-01-15")) / pd.Timedelta(days=1)
    expected = (time.month - 1) if days is None else since // days
    assert found.max() + 1 == len(set(found)) == scan(path, clusters="time", blocks=blocks).clusters
    assert len(set(zip(found, expected, strict=True))) == len(set(expected)) == len(set(found))


@pytest.mark.parametrize(
    ("clusters", "blocks", "message"),
    [
        (
            ["--clusters=patient"],
            "1q",
            "--blocks is '1q'; give a number of hours, days, weeks or months",
        ),
        (["--clusters=patient"], "7d", ", not a date that blocks could hold; write 2024-01-31"),
        ([], "7d", "--blocks cuts a column of dates into clusters; give it with --clusters."),
    ],
)
def test_blocks_that_are_none(clusters, blocks, message, tmp_path):
    path = written(tmp_path, 100)
    refused(command("test", path, "--group=survey", *clusters, "--blocks", blocks), message)
