"""Fixtures that several test modules share."""

import gc
import os
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import settings

REFERENCE = Path(
    os.environ.get("CALTEST_REFERENCE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
)

# Examples are drawn from a fixed seed: a run that passes passes again.
settings.register_profile("caltest", derandomize=True, deadline=None, print_blob=False)
settings.load_profile("caltest")


def pytest_addoption(parser):
    parser.addoption(
        "--fuzz-minutes", type=float, help="of tests/test_fuzz.py: go on for so long, with new seeds"
    )


def pytest_configure():
    """Let every worker of ``-n`` have one thread: they share the cores already."""
    gc.disable()  # while tests are collected
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_collection_finish():
    """Spare the garbage collector the tests themselves: statsmodels asks for it at every correction."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give each file to one worker: what its tests share is made once, and compiled once."""
    from xdist.scheduler import LoadFileScheduling

    return LoadFileScheduling(config, log)


@pytest.fixture(scope="session")
def reference():
    """Return a function that opens a file of the reference data, or skips the test."""

    def open_file(name):
        path = REFERENCE / name
        if not path.exists():
            pytest.skip("no reference data; CALTEST_REFERENCE_DATA names their folder")
        return np.load(path) if path.suffix == ".npz" else path

    return open_file


@pytest.fixture
def from_the_root(monkeypatch):
    """Let the studies be imported."""
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[1]))


@pytest.fixture
def pictures():
    """Draw without a screen, leave no figure behind, and no setting changed."""
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    before = mpl.rcParams.copy()
    yield
    assert mpl.rcParams == before
    plt.close("all")
