"""Work that takes long says so soon, and what is quick stays quick."""

import subprocess
import sys

import numpy as np
import pytest
from support import command as invoke
from threadpoolctl import threadpool_info

import caltest
from caltest import _parallel
from caltest._parallel import Workers, single_threaded_blas
from caltest._sums import over_columns
from caltest.exceptions import Argument, Phrase


@pytest.fixture(scope="module")
def few():
    stream = np.random.default_rng(0)
    probs = stream.random(2000)
    return probs, (stream.random(2000) < probs).astype(int)


def three(p):
    """Of two classes, pairs are added up in one pass."""
    return np.column_stack([1 - p, 0.5 * p, 0.5 * p])


LOW = "with approximation='nystrom' its time grows as the rows"
CALLS = {
    "omnibus": (lambda p, y: caltest.test(p, y, n_resamples=199, rng=0).pvalue, "null='moments'"),
    "pairs": (lambda p, y: caltest.test(three(p), y, "skce_uq", n_resamples=99, rng=0).pvalue, LOW),
    "moments": (lambda p, y: caltest.test(three(p), y, "skce_uq", null="moments").pvalue, LOW),
    "cox": (lambda p, y: caltest.test(p, y, "cox", n_resamples=99, rng=0).pvalue, "takes one fit"),
    "estimate": (lambda p, y: caltest.estimate(three(p), y, "skce_b"), "takes about 0 seconds on"),
    "audit": (lambda p, y: caltest.audit(p, y, n_resamples=199, rng=0).pvalue, "groups or statistics"),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_long_work_says_so_and_what_is_faster_and_changes_no_number(name, few, monkeypatch):
    call, said = CALLS[name]
    silent = call(*few)  # warnings are errors
    monkeypatch.setattr(_parallel, "LONG", 1e-9)
    with pytest.warns(caltest.LongWorkWarning, match="2,000 rows") as caught:
        assert call(*few) == silent
    assert said in str(caught[0].message)
    assert caught[0].filename == __file__


def test_a_file_says_so_of_all_its_rows(few, tmp_path, monkeypatch):
    many = few[0].repeat(75)
    np.save(tmp_path / "probs.npy", np.column_stack([1 - many, many]))
    mapped = np.load(tmp_path / "probs.npy", mmap_mode="r")
    monkeypatch.setattr(_parallel, "LONG", 1e-9)
    with pytest.warns(caltest.LongWorkWarning, match="'ecd' of 150,000 rows"):
        caltest.test(mapped, few[1].repeat(75), "ecd", n_resamples=19, n_jobs=1)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["test", "estimate", "audit"])
def test_commands_write_one_line_on_standard_error(command, few, tmp_path, monkeypatch):
    rows = "\n".join(",".join(map(str, [*p, y])) for p, y in zip(three(few[0]), few[1], strict=True))
    (tmp_path / "few.csv").write_text(f"no,yes,perhaps,label\n{rows}\n")
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


def test_the_pace_of_the_first_tasks_tells_how_long_all_take(monkeypatch):
    clock = iter(range(0, 1000, 3))  # each task takes three seconds
    monkeypatch.setattr(_parallel, "monotonic", lambda: next(clock))
    faster = Phrase("{option} is faster", {"option": Argument("rank", 64)})
    tasks = [(1, 1)] * 40
    with pytest.warns(caltest.LongWorkWarning) as caught:
        assert len(list(Workers(1).doing("it", faster).map(divmod, tasks))) == 40
    assert [str(each.message) for each in caught] == [
        "it takes about 2 minutes on 1 worker; rank=64 is faster."
    ]
    clock = iter(range(1000))
    assert len(list(Workers(1).doing("it", faster).map(divmod, tasks))) == 40


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
