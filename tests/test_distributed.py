"""Work shared among threads, processes and machines: the same numbers, whoever is lost."""

from __future__ import annotations

import logging
import operator
import os
import re
import signal
import threading
import time
from contextlib import contextmanager
from functools import partial

import cloudpickle
import joblib
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import dirichlet, labels_from
from threadpoolctl import threadpool_info
from typer.testing import CliRunner

import caltest
from caltest._parallel import ALONE, Workers, on_cluster
from caltest.cli import app
from caltest.exceptions import InputError
from caltest.files import scan

dask = pytest.importorskip("dask", reason="Dask is not installed: caltest[dask]")
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


@pytest.fixture
def client(cluster):
    with joblib.parallel_config(backend="dask"):
        yield cluster


@pytest.fixture(params=["dask", "loky", "threading"])
def backend(request):
    if request.param == "dask":
        request.getfixturevalue("client")
        yield request.param
    else:
        with joblib.parallel_config(backend=request.param, n_jobs=2):
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


# ------------------------------------------------------------------ who is lost


def busy(folder, probs, labels):
    """Take a moment, and say which process does."""
    (folder / str(os.getpid())).touch()
    time.sleep(0.004)
    return float(labels @ probs[:, 0])


def at_work(folder, count):
    """Wait until so many processes other than this one are at work, and return their numbers."""
    while True:
        found = {int(each.name) for each in folder.iterdir()} - {PARENT}
        if len(found) >= count:
            return sorted(found)[:count]
        time.sleep(0.01)


def kill_workers(folder, count, killed):
    for pid in at_work(folder, count):
        os.kill(pid, signal.SIGKILL)
        killed.append(pid)


def lose(count, folder):
    """Run a test while workers are killed, and return its result."""
    killed = []
    killer = threading.Thread(target=kill_workers, args=(folder, count, killed))
    killer.start()
    result = caltest.test(PROBS, LABELS, partial(busy, folder), n_resamples=320, rng=0)
    killer.join(timeout=20)
    assert len(killed) == count
    return result


@pytest.mark.parametrize("count", [1, 2])
def test_workers_killed_in_mid_run_change_no_number(tmp_path, count):
    """With one copy of the data left, and with none."""
    expected = caltest.test(PROBS, LABELS, partial(busy, tmp_path), n_resamples=320, rng=0)
    with cluster_of(2), joblib.parallel_config(backend="dask"):
        assert same(lose(count, tmp_path), expected)


def test_a_process_of_this_machine_killed_in_mid_run(tmp_path):
    expected = caltest.test(PROBS, LABELS, partial(busy, tmp_path), n_resamples=320, rng=0)
    with joblib.parallel_config(backend="loky", n_jobs=2):
        assert same(lose(1, tmp_path), expected)


def die(taken, parent, number):
    """Kill the worker of the task of number 3, once the results before it were taken."""
    if os.getpid() == parent:
        raise AssertionError("this is to run elsewhere")
    if number == 3:
        until = time.monotonic() + 20
        while taken.read_text() != "012" and time.monotonic() < until:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def take(results, taken):
    for number in results:
        taken.write_text(taken.read_text() + str(number))


def in_a_sentence(taken):
    taken.write_text("")
    results = Workers().map(partial(die, taken, PARENT), [(number,) for number in range(8)])
    with pytest.raises(
        RuntimeError, match=r"^workers died again and again when 3 of 8 tasks were done "
    ) as caught:
        take(results, taken)
    return caught.value.__suppress_context__ and "\n" not in str(caught.value)


def test_work_that_kills_its_workers_ends_in_a_sentence(tmp_path):
    with joblib.parallel_config(backend="loky", n_jobs=2):
        assert in_a_sentence(tmp_path / "taken")
    once = {"distributed.scheduler.allowed-failures": 0}
    with dask.config.set(once), cluster_of(2), joblib.parallel_config(backend="dask"):
        assert in_a_sentence(tmp_path / "taken")


def test_no_workers_at_all_ends_in_a_sentence():
    with (
        cluster_of(0),
        joblib.parallel_config(backend="dask", wait_for_workers_timeout=1),
        pytest.raises(RuntimeError, match=r"^joblib's cluster does not answer \(.* no worker after 1 "),
    ):
        caltest.test(PROBS, LABELS, "ecd", rng=0)


def part_of(folder, number):
    """Take a moment, say which process does, and return numbers whose sum depends on its order."""
    (folder / str(os.getpid())).touch()
    time.sleep(0.02)
    return np.random.default_rng(number).normal(size=50) * 10.0 ** (number % 7)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_sums_survive_who_made_them(tmp_path, count):
    """Terms, and sums of some, are lost with the workers that held them."""
    tasks = [(number,) for number in range(100)]
    expected = ALONE.merged(partial(part_of, tmp_path), tasks, np.add)
    killed = []
    killer = threading.Thread(target=kill_workers, args=(tmp_path, count, killed))
    with cluster_of(2), joblib.parallel_config(backend="dask"):
        killer.start()
        assert np.array_equal(Workers().merged(partial(part_of, tmp_path), tasks, np.add), expected)
    killer.join(timeout=20)
    assert len(killed) == count


def test_a_sum_that_kills_its_workers_ends_in_a_sentence(tmp_path):
    (tmp_path / "taken").write_text("012")
    tasks = [(number,) for number in range(8)]
    once = {"distributed.scheduler.allowed-failures": 0}
    with (
        dask.config.set(once),
        cluster_of(2),
        joblib.parallel_config(backend="dask"),
        pytest.raises(RuntimeError, match=r"^workers died again and again when 8 tasks were not yet "),
    ):
        Workers().merged(partial(die, tmp_path / "taken", PARENT), tasks, operator.add)


def test_errors_in_files_come_through(client, tmp_path):
    probs = MANY.copy()
    probs[60_000] = 0.7
    np.save(tmp_path / "rows.npy", np.column_stack([probs, MANY_LABELS]).repeat(2, axis=0))
    with pytest.raises(InputError, match=r"rows.npy: .*row 120000 \(counting from 0\)"):
        caltest.test(scan(tmp_path / "rows.npy", label=-1), statistic="brier", n_resamples=19, rng=0)


# ------------------------------------------------------------------ the command

QUICK = ("--statistic", "brier", "--resamples", "39", "--seed", "0", "--json")


def test_the_command_works_on_a_cluster(cluster, tmp_path):
    stored_rows(tmp_path)
    sent = ("--scheduler", cluster.scheduler.address)
    file = (str(tmp_path / "rows.npy"), "--label=-1")
    here, there = (
        CliRunner().invoke(app, ["test", *file, *QUICK, *more]) for more in (("--jobs", "1"), sent)
    )
    assert here.exit_code == there.exit_code == 0
    assert here.stdout == there.stdout
    audit = ["audit", "--example", "digits:naive_bayes", "--resamples", "199", "--seed", "0"]
    here, there = (CliRunner().invoke(app, [*audit, *more]) for more in (("--jobs", "1"), sent))
    assert here.exit_code == there.exit_code == 1
    assert here.stdout == there.stdout


@pytest.mark.parametrize("command", ["test", "audit"])
@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("tcp://127.0.0.1:1", "no Dask scheduler answers at 'tcp://127.0.0.1:1' .*; start one there"),
        ("nonsense", "no Dask scheduler answers at 'nonsense' .*missing port"),
    ],
)
def test_a_scheduler_that_does_not_answer(monkeypatch, command, address, message):
    monkeypatch.setattr("caltest._parallel._ANSWER", 1)
    failed = CliRunner().invoke(
        app, [command, "--example", "digits:naive_bayes", "--scheduler", address]
    )
    assert failed.exit_code == 2
    assert re.match(f"Error: {message}", failed.stderr)
    assert failed.stderr.count("\n") == 1


def test_a_scheduler_without_workers():
    with (
        cluster_of(0) as client,
        pytest.raises(InputError, match="has no workers; start some"),
        on_cluster(client.scheduler.address),
    ):
        pass


# ------------------------------------------------------------------ what is sent


def test_paths_and_one_table_go_through_the_caller(cluster, tmp_path, monkeypatch):
    """Of a million rows, 16 MB: the function once, some bytes a task, and what all rows add up to."""
    rng = np.random.default_rng(0)
    chance = rng.random(1_000_000)
    columns = {"a": 1 - chance, "b": chance, "label": (rng.random(1_000_000) < chance).astype(int)}
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet", row_group_size=100_000)
    sent, received = [], []
    submit, scatter, result = cluster.submit, cluster.scatter, distributed.Future.result

    def count_submit(function, *arguments, **more):
        sent.extend(len(each) for each in arguments if isinstance(each, bytes))
        assert all(
            isinstance(each, bytes | str | distributed.Future) or callable(each) for each in arguments
        )
        return submit(function, *arguments, **more)

    def count_scatter(data, **more):
        sent.append(data.packed.nbytes)
        return scatter(data, **more)

    def count_result(future, *more):
        found = result(future, *more)
        received.append(len(cloudpickle.dumps(found)))
        return found

    monkeypatch.setattr(cluster, "submit", count_submit)
    monkeypatch.setattr(cluster, "scatter", count_scatter)
    monkeypatch.setattr(distributed.Future, "result", count_result)
    with joblib.parallel_config(backend="dask", client=cluster):
        found = caltest.test(scan(tmp_path / "rows.parquet"), statistic="ecd", n_resamples=39, rng=0)
    assert found.n_samples == 1_000_000
    assert 10 < len(sent) < 300
    assert max(sent) < 20_000  # the function; a task is less than a hundred bytes
    assert sum(sent) < 50_000
    assert sum(received) < 5_000
    assert len(received) == 1


class Data:
    """Large and small arrays, which count how often they are packed and unpacked."""

    packed = 0

    def __init__(self, folder):
        self.folder = folder
        self.large, self.small = np.arange(300_000.0), np.arange(10.0)
        self.later = 0.0

    def __getstate__(self):
        Data.packed += 1
        return self.__dict__

    def __setstate__(self, state):
        self.__dict__.update(state)
        (self.folder / f"{os.getpid()}-{time.monotonic_ns()}").touch()

    def value(self, number):
        time.sleep(0.02)
        return self.large[number] + self.small.sum()


def test_data_are_sent_once_to_every_worker(backend, tmp_path):
    Data.packed = 0
    tasks = [(number,) for number in range(40)]
    assert list(Workers().map(Data(tmp_path).value, tasks)) == [45.0 + n for n in range(40)]
    unpacked = [each.name.split("-")[0] for each in tmp_path.iterdir()]
    assert len(set(unpacked)) == (0 if backend == "threading" else 2)
    if backend == "dask":
        assert len(unpacked) == 2
    assert Data.packed == (0 if backend == "threading" else 1)


def test_what_cannot_be_sent_is_told_in_a_sentence(backend):
    lock = threading.Lock()

    def statistic(probs, labels):
        with lock:
            return float(labels[0])

    run = partial(caltest.test, PROBS, LABELS, statistic, n_resamples=200, rng=0)
    if backend == "threading":
        assert run().n_resamples == 200
        return
    with pytest.raises(InputError, match=r"cannot be sent to other processes \(.*lock.*\): keep open"):
        run()


def test_large_arguments_reach_their_task(client):
    tasks = [(np.full(2_000_000, number, dtype=np.float64), number) for number in range(4)]
    assert list(Workers().map(first_is, tasks)) == [True] * 4


def first_is(values, number):
    return bool(values[0] == values[-1] == number)


class Broken:
    """Tasks of which the sixth cannot be read."""

    def __len__(self):
        return 20

    def __iter__(self):
        for number in range(5):
            yield (number,)
        raise InputError("the file breaks off.")


def test_tasks_that_cannot_be_read(backend):
    results = Workers().map(abs, Broken())
    assert [next(results) for _ in range(5)] == list(range(5))
    with pytest.raises(InputError, match=r"^the file breaks off\.$"):
        next(results)


def test_tasks_are_as_many_as_they_say(backend):
    class TooFew(Broken):
        def __iter__(self):
            return iter([(1,), (2,)])

    with pytest.raises(RuntimeError, match="2 tasks came, and 20 were announced"):
        list(Workers().map(abs, TooFew()))


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


def inner(parent):
    """Work for others, from within a task of Dask."""
    with joblib.parallel_config(backend="dask"):
        return list(Workers().map(partial(add, parent), [(n,) for n in range(8)]))


def add(one, other):
    return one + other


def test_within_a_task_of_dask(client):
    futures = [client.submit(inner, first) for first in (1, 2, 3)]
    assert [each.result(timeout=30) for each in futures] == [
        [first + n for n in range(8)] for first in (1, 2, 3)
    ]


def test_no_more_workers_than_are_of_use():
    assert Workers(1024).hands == max(32, joblib.cpu_count())
    assert Workers(3).hands == 3
    assert Workers(-1).hands == joblib.cpu_count()
    assert Workers(None).hands == 1
    many = caltest.test(MANY, MANY_LABELS, "ecd", n_resamples=99, rng=0, n_jobs=1024)
    assert same(many, caltest.test(MANY, MANY_LABELS, "ecd", n_resamples=99, rng=0))
