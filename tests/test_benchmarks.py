"""The command of the benchmarks: it runs, its rows are valid, and its arithmetic is right."""

import csv
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pages import ROOT, of_source

pytestmark = [pytest.mark.slow, of_source, pytest.mark.usefixtures("from_the_root")]


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "validation.benchmarks", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_command_measures_and_writes_valid_rows(tmp_path):
    done = command("--quick", "--only", "cox, null chi2", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1/2 cox, null chi2, n = 300, m = 2" in done.stdout
    ours, theirs = rows_of(tmp_path / "benchmarks_times.csv")
    assert (ours["by"], theirs["by"]) == ("caltest", "probcal")
    assert 0 < float(ours["best_s"]) <= float(ours["median_s"])
    assert int(ours["runs"]) >= 3
    assert float(ours["memory_mb"]) >= 0
    assert float(ours["held_mb"]) > 10
    assert 0 < float(ours["pvalue"]) <= 1
    assert not ours["reason"]
    assert "--peers" in theirs["reason"]
    assert not theirs["best_s"]
    rates = {
        row["what"]: float(row["per_second"]) for row in rows_of(tmp_path / "benchmarks_limits.csv")
    }
    assert min(rates.values()) > 1e6
    page = (tmp_path / "benchmarks.md").read_text()
    assert "| cox, null chi2 | 300 | 2 | 1 |" in page
    assert "not measured: no environment of the peers" in page


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--only", "nothing_like_it"), "nothing is called nothing_like_it"),
        (("--before", "validation"), "validation is no checkout of caltest"),
        (("--peers-python", "nowhere"), "there is no nowhere"),
    ],
)
def test_wrong_options_are_errors_before_any_work(tmp_path, arguments, said):
    done = command(*arguments, "--out", tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert not list(tmp_path.iterdir())


def test_an_older_checkout_is_measured_with_what_is_here(tmp_path):
    older = tmp_path / "older"
    shutil.copytree(ROOT / "caltest", older / "caltest", ignore=shutil.ignore_patterns("__pycache__"))
    testing = older / "caltest" / "testing.py"
    testing.write_text(testing.read_text() + "\n\ndef estimate(*_, **__):\n    return 7.0\n")
    done = command("--quick", "--only", "estimate with", "--before", older, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    (found,) = rows_of(tmp_path / "benchmarks_before.csv")
    assert float(found["before_value"]) == 7.0 != float(found["now_value"])
    assert float(found["ratio"]) == pytest.approx(
        float(found["now_s"]) / float(found["before_s"]), rel=1e-4
    )
    assert found["pairs"] == "2"
    assert "| estimate with defaults | 10 | 10 | 1 |" in (tmp_path / "benchmarks.md").read_text()
    assert not (tmp_path / "benchmarks_times.csv").exists()


# ------------------------------------------------------------------ one child


def hold(megabytes):
    """Hold and let go of memory; in the module that the child is told of."""
    return lambda: {"value": float(np.ones(megabytes * 125_000).sum())}


def fail():
    raise ValueError("no such thing\nand a second line")


def decline():
    from validation.benchmarks.child import NotMeasured

    raise NotMeasured("not here")


def loud():
    print("measured: {}")  # noqa: T201
    return lambda: {"value": 1.0}


def task(work, **options):
    return {"module": "test_benchmarks", "work": work, "options": options}


@pytest.fixture
def runner(tmp_path, monkeypatch):
    from validation.benchmarks.runner import Runner

    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    return Runner(folder=tmp_path, run="now", timeout=60.0)


def test_memory_is_that_of_the_measured_work_alone(runner):
    found = runner.child(task("hold", megabytes=120))
    assert found["value"] == 120 * 125_000
    assert 110 < found["memory_mb"] < 135
    assert found["runs"] == 1


def test_what_cannot_be_measured_has_its_reason(runner):
    assert runner.child(task("fail")) == {"reason": "ValueError: no such thing"}
    assert runner.child(task("decline")) == {"reason": "not here"}
    assert runner.child(task("nothing"))["reason"].startswith("AttributeError")
    assert runner.child(task("fail"), by="probcal")["reason"].startswith("no environment")


def test_only_the_last_answer_counts(runner):
    assert runner.child(task("loud"))["value"] == 1.0


def test_a_case_that_takes_too_long_is_a_row(runner):
    runner.timeout = 0.01
    assert runner.child(task("loud")) == {"reason": "took longer than 0.01 s"}


@pytest.mark.parametrize(("first", "runs"), [(0.4, 3), (3.5, 2), (9.0, 1)])
def test_long_cases_run_less_often(first, runs):
    from validation.benchmarks.child import _wanted

    times = [first]
    while _wanted(times, 1.0):
        times.append(first)
    assert len(times) == runs


# ------------------------------------------------------------------ cases, limits, growth, table


def test_every_case_names_work_that_exists_and_has_a_key_of_its_own():
    from validation.benchmarks import own, peers
    from validation.benchmarks.cases import cases

    every = cases()
    assert len({case.key for case in every}) == len(every)
    for case in every:
        home = own if case.by == "caltest" else peers
        assert callable(getattr(home, case.work)), case
        assert case.by in ("caltest", *peers.PACKAGES)


def test_a_peer_brings_ours_of_the_same_input():
    from validation.benchmarks.cases import cases, wanted

    assert {case.by for case in wanted(["netcal"])} == {"netcal", "caltest"}
    for case in cases():
        if case.by != "caltest":
            same = [
                c for c in cases() if (c.what, c.n, c.m, c.by) == (case.what, case.n, case.m, "caltest")
            ]
            assert same, case
    assert not any(case.full for case in wanted())
    assert max(case.n for case in wanted(quick=True)) <= 300


def test_aims_and_growth_speak_of_cases_that_there_are():
    from validation.benchmarks.aims import AIMS
    from validation.benchmarks.cases import cases
    from validation.benchmarks.growth import SERIES

    keys = {case.key for case in cases()}
    for aim in AIMS:
        assert (aim.what, "caltest", aim.n, aim.m, aim.jobs) in keys, aim
        others = {by for what, by, *sizes in keys if (what, *sizes) == (aim.what, *aim[1:4])}
        assert (len(others) > 1) == aim.of_peer, aim
    for series in SERIES:
        names = ("what", "by", "n", "m", "jobs")
        rows = [{**dict(zip(names, map(str, key), strict=True)), "reason": ""} for key in keys]
        assert sum(series.size(row) > 0 for row in rows) >= 3, series


def test_least_time_by_hand():
    from validation.benchmarks.limits import least_seconds

    rates = {"exp float64": 100.0, "product float64 256x10x256": 50.0}
    rates |= {"product float64 512x512x256": 40.0, "uniform float64": 10.0}
    assert least_seconds("pairs", 10, 10, rates) == pytest.approx(50 * (1 / 100 + 20 / 50))
    pairs = 50 * (1 / 100 + 20 / 50)
    null = pairs + 50 * 2 * 9 * 3 / 40 + 30 / 10
    assert least_seconds("null", 10, 10, rates, draws=3) == pytest.approx(null)
    assert least_seconds("null", 10, 10, rates, draws=3, jobs=2) == pytest.approx(null / 2)
    assert least_seconds("draws", 10, 10, rates, draws=3) == pytest.approx(3.0)
    assert least_seconds("", 10, 10, rates) is None


def row(what="SKCE_uq, TV", by="caltest", n=10_000, m=10, jobs=1, best=1.0, **more):
    from validation.benchmarks.store import TIMES

    found = dict.fromkeys(TIMES, "") | {
        "run": "now", "what": what, "by": by, "n": str(n), "m": str(m), "jobs": str(jobs),
        "best_s": str(best), "median_s": str(best), "runs": "1", "memory_mb": "3",
    }  # fmt: skip
    return found | {name: str(value) for name, value in more.items()}


def test_exponents_are_slopes_of_one_run():
    from validation.benchmarks.growth import SERIES, exponents

    rows = [row(n=n, best=1e-8 * n**2, memory_mb=n / 1000) for n in (10_000, 20_000, 50_000)]
    old = [row(n=40_000, best=99.0, run="before"), row(n=1_000, best=99.0)]
    found = exponents(rows + old + [row(n=30_000, best="", reason="took too long")], SERIES[0])
    assert found["time"] == pytest.approx(2.0)
    assert found["memory"] == pytest.approx(1.0)
    assert found["sizes"] == "10000 20000 50000"
    assert exponents(rows[:2], SERIES[0]) is None
    flat = [row(n=n, memory_mb=0.0) for n in (10_000, 20_000, 50_000)]
    assert exponents(flat, SERIES[0])["memory"] == pytest.approx(0.0)


def page_of(folder, times):
    """Return the page of some times, and of nothing else."""
    from validation.benchmarks import store
    from validation.benchmarks.table import written

    rows = store.times(folder)
    rows.rows = list(times)
    rows.write()
    return written(folder)


def test_ratios_are_of_the_same_input_run_and_number(tmp_path):
    name = "SKCE_uq, two classes"
    ours = row(name, m=2, best=0.5, value=0.25, limit_s=0.25, limit32_s=0.125)
    same, other = (row(name, "probcal", m=2, best=2.0, value=v) for v in (0.25, 0.75))
    assert "| 0.5 s | 3 MB | 2 / 4 | probcal 4 |" in page_of(tmp_path, [ours, same])
    page = page_of(tmp_path, [ours, other])
    assert "| 2 / 4 |  |" in page
    assert "0.75, ours 0.25" in page
    page = page_of(tmp_path, [ours, same | {"run": "before"}])
    assert "probcal 4" not in page


def test_aims_are_missed_where_they_are_missed():
    from validation.benchmarks.aims import aims
    from validation.benchmarks.cases import AUDIT, KS

    about = dict.fromkeys(("peer_s", "before_s", "by"), "") | {"m": "10", "jobs": "2"}
    ours = about | {"what": AUDIT, "n": "100000", "before_s": "6.4", "now_s": "5"}
    beside = about | {"what": KS, "n": "1000", "m": "2", "jobs": "1", "by": "mapie"}
    beside |= {"before_s": "0.003", "now_s": "0.001", "peer_s": "0.002"}
    met = [tuple(line.values())[1:] for line in aims([ours, beside], [])]
    assert met == [
        ("≤ 1 × mapie", "1.5 ×", "0.5 ×", "reached"),
        ("≤ 4 s", "6.4 s", "5 s", "1.2 times the aim"),
    ]


def test_rows_are_written_as_they_come_and_replaced_by_key(tmp_path):
    from validation.benchmarks.store import Store

    store = Store(tmp_path / "s.csv", ("a", "b"), ("a",))
    store.put(a="x", b=1.5)
    assert rows_of(store.path) == [{"a": "x", "b": "1.5"}]
    store.put(a="y", b=None)
    store.put(a="x", b=2)
    again = Store(store.path, ("a", "b"), ("a",))
    assert again.rows == [{"a": "x", "b": "2"}, {"a": "y", "b": ""}]
    again.keep([("y",)])
    assert again.rows == [{"a": "y", "b": ""}]


def test_the_peers_do_not_import_caltest():
    code = (
        "import sys, json; import validation.benchmarks.peers, validation.benchmarks.findings, "
        "validation.benchmarks.limits; print(json.dumps([m for m in sys.modules if 'caltest' in m]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == []


def test_a_package_that_was_not_installed_is_a_row(runner):
    from validation.benchmarks.cases import wanted

    runner.peers = dict.fromkeys(("probcal", "netcal"), Path(sys.executable))
    runner.failed = {"probcal": "cannot be installed: no reason given"}
    case = next(case for case in wanted(["probcal"], quick=True) if case.by == "probcal")
    assert runner.case(case) == {"reason": "cannot be installed: no reason given"}
    netcal = replace(case, by="netcal", work="netcal_mmce", options={}, m=3)
    assert runner.case(netcal)["reason"].startswith("ModuleNotFoundError")


# ------------------------------------------------------------------ compiled loops


def loops_and_classes():
    if not (ROOT / "validation").exists():
        return []
    sys.path.insert(0, str(ROOT))
    try:
        from validation.benchmarks.loops import LOOPS
    finally:
        sys.path.remove(str(ROOT))
    return [(name, m) for name, loop in LOOPS.items() for m in loop.classes]


@pytest.mark.parametrize(("name", "m"), loops_and_classes())
def test_a_loop_and_the_plain_way_do_the_same(name, m):
    from validation.benchmarks.loops import both

    works = both(name, m, quick=True)
    found, plain = works.compiled().copy(), works.plain()
    assert works.count > 0
    np.testing.assert_allclose(found, plain, rtol=1e-10, atol=1e-14)
    np.testing.assert_array_equal(works.compiled(), found)


def test_every_loop_is_measured():
    from caltest.loops import kernels as _kernel_loops
    from caltest.loops import rows as _loops
    from validation.benchmarks.loops import LOOPS

    members = {**vars(_loops), **vars(_kernel_loops)}
    compiled = {name for name, value in members.items() if hasattr(value, "py_func")}
    measured = {name.partition(",")[0] for name in LOOPS}  # some in two ways
    assert {name for name in compiled if not name.startswith("_")} == measured
