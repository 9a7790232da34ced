"""Work shared among threads, processes and machines: the same numbers, whoever does it."""

import logging
import os
from contextlib import contextmanager

import joblib
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import dirichlet, labels_from
from threadpoolctl import threadpool_info

import caltest
from caltest._parallel import ALONE, Workers
from caltest.exceptions import InputError
from caltest.files import scan

distributed = pytest.importorskip("distributed", reason="Dask is not installed: caltest[dask]")

# Sockets and loops of a cluster that is closed are freed when Python gets to it.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

PROBS = dirichlet(1500, 3, 0)
LABELS = labels_from(dirichlet(1500, 3, 0, 0.9), np.random.default_rng(1))
MANY = dirichlet(70_000, 2, 2)  # taken row by row, with all draws
MANY_LABELS = (np.random.default_rng(3).random(70_000) < MANY[:, 1]).astype(int)
PARENT = os.getpid()


@contextmanager
def cluster_of(n_workers):
    """Worker processes on this machine."""
    with (
        distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def cluster():
    with cluster_of(2) as client:
        yield client


@pytest.fixture(params=["dask", "loky", "threading"])
def backend(request):
    options = {"n_jobs": 2}
    if request.param == "dask":
        request.getfixturevalue("cluster")
        options = {}
    with joblib.parallel_config(backend=request.param, **options):
        yield request.param


def signed_error(probs, labels):
    return float(np.mean((labels == 0) - probs[:, 0]))


def stored_rows(folder):
    path = folder / "rows.npy"
    np.save(path, np.column_stack([MANY, MANY_LABELS]).repeat(2, axis=0))
    return scan(path, label=-1)


def stored_clusters(folder):
    """More rows than are read into memory, those of a cluster far apart; with weights."""
    path, rows = folder / "clusters.parquet", 2 * len(MANY)
    columns = {
        "p": MANY[:, 1].repeat(2),
        "label": MANY_LABELS.repeat(2),
        "patient": np.arange(rows) % 5000,
        "counts": 1.0 + np.arange(rows) % 3,
    }
    pq.write_table(pa.table(columns), path, row_group_size=20_000)
    return scan(path, columns=["p"], clusters="patient", weights="counts")


CASES = {
    "all pairs": lambda folder: caltest.test(PROBS, LABELS, "skce_uq", n_resamples=130, rng=0),
    "default": lambda folder: caltest.test(PROBS, LABELS, n_resamples=130, rng=0),
    "rows": lambda folder: caltest.test(MANY, MANY_LABELS, "ecd", n_resamples=130, rng=0),
    "moments": lambda folder: caltest.test(MANY[:4000], MANY_LABELS[:4000], "skce_uq", null="moments"),
    "own function": lambda folder: caltest.test(PROBS, LABELS, signed_error, n_resamples=300, rng=0),
    "file": lambda folder: caltest.test(stored_rows(folder), statistic="brier", n_resamples=130, rng=0),
    "clusters": lambda folder: caltest.test(
        PROBS, LABELS, clusters=np.arange(1500) // 3, n_resamples=130, rng=0
    ),
    "file in clusters": lambda folder: caltest.test(
        stored_clusters(folder), statistic="brier", n_resamples=130, rng=0
    ),
}


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What one worker finds; each is computed once."""
    found = {}

    def result(case):
        if case not in found:
            found[case] = CASES[case](tmp_path_factory.mktemp("alone"))
        return found[case]

    return result


def same(one, other):
    draws = (one.null_distribution, other.null_distribution)
    if draws[0] is not None:
        assert np.array_equal(*draws)
    return (one.statistic, one.pvalue) == (other.statistic, other.pvalue)


@pytest.mark.parametrize("case", CASES)
def test_the_same_numbers(backend, alone, case, tmp_path):
    with joblib.parallel_config(n_jobs=1, backend="threading"):
        expected = alone(case)
    assert same(CASES[case](tmp_path), expected)


def test_errors_in_files_come_through(backend, tmp_path):
    probs = MANY.copy()
    probs[60_000] = 0.7
    np.save(tmp_path / "rows.npy", np.column_stack([probs, MANY_LABELS]).repeat(2, axis=0))
    with pytest.raises(InputError, match=r"rows.npy: .*row 120000 \(counting from 0\)"):
        caltest.test(scan(tmp_path / "rows.npy", label=-1), statistic="brier", n_resamples=19, rng=0)


def test_errors_of_functions_come_through(backend):
    with pytest.raises(ZeroDivisionError):
        list(Workers().map(divmod, [(1, 1), (1, 0), (1, 1), (1, 1)]))


# ------------------------------------------------------------------ who works


def whereabouts(_):
    blas = [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]
    return os.getpid(), max(blas, default=1)


def test_blas_has_one_thread_in_every_worker(backend):
    assert {threads for _, threads in Workers().map(whereabouts, [(n,) for n in range(8)])} == {1}


def test_one_worker_asked_for_is_this_process(backend):
    for workers in (ALONE, Workers(n_jobs=1)):
        assert {pid for pid, _ in workers.map(whereabouts, [(n,) for n in range(8)])} == {PARENT}


def test_no_more_workers_than_are_of_use():
    assert Workers(1024).hands == max(32, joblib.cpu_count())
    assert Workers(3).hands == 3
    assert Workers(-1).hands == joblib.cpu_count()
    assert Workers(None).hands == 1
    many = caltest.test(MANY, MANY_LABELS, "ecd", n_resamples=99, rng=0, n_jobs=1024)
    assert same(many, caltest.test(MANY, MANY_LABELS, "ecd", n_resamples=99, rng=0))
