"""Work that takes long says so before it starts, and what is quick stays quick."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
from support import command as invoke
from threadpoolctl import threadpool_info

import caltest
from caltest import _parallel
from caltest._parallel import Workers, single_threaded_blas
from caltest._sums import over_columns
from caltest.exceptions import Argument, Phrase
from caltest.nulls import Bootstrap, ConditionalMoments, MonteCarlo
from caltest.statistics import UnbiasedSKCE

ROWS = 300_000


class StartedError(Exception):
    """The work itself has begun."""


def started(*_):
    raise StartedError


@pytest.fixture(scope="module")
def many():
    stream = np.random.default_rng(0)
    probs = stream.random(ROWS)
    return probs, (stream.random(ROWS) < probs).astype(int)


@pytest.fixture(scope="module")
def three(many):
    """Of two classes, pairs are added up in one pass."""
    return np.column_stack([1 - many[0], 0.5 * many[0], 0.5 * many[0]]), many[1]


@pytest.fixture
def few(many):
    return many[0][:300], many[1][:300]


@pytest.mark.parametrize(
    ("statistic", "null", "kind", "said"),
    [
        ("skce_uq", None, MonteCarlo, "with approximation='nystrom' its time grows as the rows"),
        (UnbiasedSKCE(rank=2), "moments", ConditionalMoments, "with approximation='nystrom'"),
        ("skce_uq", "bootstrap", Bootstrap, "with approximation='nystrom'"),
        ("cox", None, MonteCarlo, "null='chi2' takes one fit"),
    ],
)
def test_long_work_says_so_and_what_is_faster_before_it_starts(
    statistic, null, kind, said, three, many, monkeypatch
):
    monkeypatch.setattr(kind, "answer", started)
    with pytest.warns(caltest.LongWorkWarning) as caught, pytest.raises(StartedError):
        caltest.test(*(many if statistic == "cox" else three), statistic, null=null, n_jobs=1)
    (warning,) = caught
    assert said in str(warning.message)
    assert f"of 300,000 rows, by the null '{kind.name}', takes about " in str(warning.message)
    assert warning.filename == __file__


def test_an_estimate_of_all_pairs_says_so_too(three, monkeypatch):
    monkeypatch.setattr("caltest.nulls.observed_value", started)
    monkeypatch.setattr(_parallel, "LONG", 5.0)
    said = pytest.warns(caltest.LongWorkWarning, match=r"'skce_b' of 300,000 rows takes about \d+ s")
    with said, pytest.raises(StartedError):
        caltest.estimate(*three, "skce_b")


@pytest.mark.parametrize(
    ("statistic", "null"),
    [
        ("ecd", None), ("ks", None), ("skce_uq", None), ("cox", "chi2"), ("spiegelhalter", "moments"),
        (UnbiasedSKCE(approximation="nystrom", rank=8), None),
    ],
)  # fmt: skip
def test_what_is_done_in_a_minute_is_silent(statistic, null, many, monkeypatch):
    kind = {None: MonteCarlo, "moments": ConditionalMoments, "chi2": caltest.nulls.Chi2}[null]
    monkeypatch.setattr(kind, "answer", started)
    with pytest.raises(StartedError):  # warnings are errors
        caltest.test(*many, statistic, null=null)


CALLS = {
    "omnibus": lambda p, y: caltest.test(p, y, n_resamples=19, rng=0).pvalue,
    "nystrom": lambda p, y: (
        caltest.test(p, y, UnbiasedSKCE(approximation="nystrom", rank=64), n_resamples=19, rng=0).pvalue
    ),
    "brier": lambda p, y: caltest.test(p, y, "brier", null="moments").pvalue,
    "estimate": lambda p, y: caltest.estimate(p, y, "ece"),
    "audit": lambda p, y: caltest.audit(p, y, n_resamples=99, rng=0).pvalue,
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_warning_changes_no_number(call, few, monkeypatch):
    silent = call(*few)
    monkeypatch.setattr(_parallel, "LONG", 1e-12)
    with pytest.warns(caltest.LongWorkWarning, match="300 rows"):
        assert call(*few) == silent


def test_a_file_says_so_of_all_its_rows(many, tmp_path, monkeypatch):
    np.save(tmp_path / "probs.npy", np.column_stack([1 - many[0], many[0]]))
    mapped = np.load(tmp_path / "probs.npy", mmap_mode="r")
    monkeypatch.setattr("caltest.one_pass.table_of_blocks", started)
    monkeypatch.setattr(_parallel, "LONG", 1.0)
    said = pytest.warns(caltest.LongWorkWarning, match="'ecd' of 300,000 rows")
    with said, pytest.raises(StartedError):
        caltest.test(mapped, many[1], "ecd", n_jobs=1)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["test", "estimate", "audit"])
def test_commands_write_one_line_on_standard_error(command, few, tmp_path, monkeypatch):
    rows = "\n".join(f"{1 - p},{p},{y}" for p, y in zip(*few, strict=True))
    (tmp_path / "few.csv").write_text(f"no,yes,label\n{rows}\n")
    more = ["--statistic", "skce_uq"] if command != "audit" else []
    arguments = [command, str(tmp_path / "few.csv"), *more]
    assert invoke(*arguments).stderr == ""
    monkeypatch.setattr(_parallel, "LONG", 1e-12)
    (line,) = invoke(*arguments).stderr.splitlines()
    assert line.startswith("Note: ")
    assert "takes about 0 seconds on " in line
    shown = {
        "audit": "--resamples",
        "test": "--approximation nystrom",
        "estimate": "caltest test --app",
    }
    assert shown[command] in line  # "estimate" has no such option


def test_more_workers_take_less(monkeypatch):
    faster = Phrase("{option} is faster", {"option": Argument("rank", 64)})
    for workers, text in ((Workers(1), "2 minutes on 1 worker"), (Workers(2), "1 minute on 2 workers")):
        with pytest.warns(caltest.LongWorkWarning, match=f"^it takes about {text}; rank=64 is faster"):
            _parallel.announce("it", 150.0, workers, faster)
    _parallel.announce("it", 150.0, Workers(4), faster)  # says nothing


def test_the_warning_can_be_silenced(few, monkeypatch):
    monkeypatch.setattr(_parallel, "LONG", 1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", caltest.LongWorkWarning)
        CALLS["estimate"](*few)


# ------------------------------------------------------------------ overhead


def test_importing_the_package_imports_nothing_heavy():
    heavy = "numba pandas pyarrow matplotlib dask scipy narwhals joblib statsmodels typer rich"
    code = f"import sys, caltest; print(*set({heavy.split()!r}) & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.slow
def test_a_call_imports_nothing_that_it_does_not_need():
    heavy = ["numba", "matplotlib", "dask", "scipy.stats", "statsmodels", "typer", "rich"]
    code = (
        "import sys, caltest\n"
        "caltest.test([0.2, 0.7, 0.6], [0, 1, 1], 'spiegelhalter', null='normal')\n"
        "caltest.test([0.2, 0.7, 0.6], [0, 1, 1], 'kuiper', null='brownian')\n"
        "caltest.test([0.2, 0.7, 0.6], [0, 1, 1], 'hosmer_lemeshow', null='chi2')\n"
        "caltest.estimate([0.2, 0.7, 0.6], [0, 1, 1], 'ece')\n"
        f"print(*set({heavy!r}) & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize("combine", [np.add, np.multiply, np.maximum, np.minimum])
@pytest.mark.parametrize("m", [1, 2, 3, 7, 8, 10, 16, 17, 40])
def test_reductions_over_few_columns_are_numpys_to_the_last_bit(combine, m):
    table = np.random.default_rng(m).random((500, m))
    assert np.array_equal(over_columns(combine, table), combine.reduce(table, axis=1))


def test_blas_has_one_thread_inside_and_its_own_before_and_after():
    def threads():
        return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]

    before = threads()
    for _ in range(2):
        with single_threaded_blas():
            with single_threaded_blas():
                assert set(threads()) == {1}
            assert set(threads()) == {1}
        assert threads() == before
