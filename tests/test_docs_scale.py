"""What docs/scale.md shows is what happens, and its arithmetic is right."""

import re
import subprocess
import sys

import pytest
from pages import blocks, page

from caltest._parallel import _MOST
from caltest.forms.kernel_matrices import FULL_ROWS, FULL_ROWS_OF_CLUSTERS
from caltest.sampling import ROWS

pytestmark = pytest.mark.slow

PAGE = page("docs/scale.md")
(ON_DASK,) = blocks(PAGE, "python")


def printed(code, folder):
    """Run a script of its own, as a reader does."""
    script = folder / "script.py"
    script.write_text(code)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), re.findall(r"print\(.*\)  # (.*)", code)


def test_the_page_on_dask(tmp_path):
    pytest.importorskip("distributed", reason="Dask is not installed: caltest[dask]")
    found, told = printed(ON_DASK, tmp_path)
    assert found == told == ["0.001"]


def test_the_numbers_on_the_page():
    numbers = f"up to {FULL_ROWS:,} rows ({FULL_ROWS_OF_CLUSTERS:,} in clusters".replace(",", " ")
    assert numbers in PAGE
    assert f"`n_jobs=100000` starts {_MOST}, or as many as there are cores" in PAGE
    assert f"a block of {ROWS:,} rows at a time".replace(",", " ") in PAGE
    for per_second, hours in [(57_000, 5), (13_000, 21), (6_500, 42)]:
        assert f"({per_second:,}".replace(",", " ") in PAGE
        assert 10**9 / per_second / 3600 == pytest.approx(hours, rel=0.03)
