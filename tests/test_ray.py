"""The same numbers on Ray, where it is installed."""

from __future__ import annotations

import logging

import joblib
import pytest
from test_distributed import CASES, LABELS, PROBS, same

import caltest

ray = pytest.importorskip("ray", reason="Ray is not installed: caltest[ray]")
from ray.util.joblib import register_ray  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_ray_that_is_not_started_ends_in_a_sentence():
    register_ray()
    assert not ray.is_initialized()
    with (
        joblib.parallel_config(backend="ray", n_jobs=-1),
        pytest.raises(RuntimeError, match=r"^joblib's cluster does not answer \(.*Ray has not been"),
    ):
        caltest.test(PROBS, LABELS, "ecd", rng=0)


@pytest.fixture(scope="module")
def running():
    register_ray()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    yield
    ray.shutdown()


@pytest.mark.parametrize("case", ["all pairs", "rows"])
def test_the_same_numbers_on_ray(running, case, tmp_path):
    expected = CASES[case](tmp_path)
    with joblib.parallel_config(backend="ray", n_jobs=-1):
        assert same(CASES[case](tmp_path), expected)
