"""What docs/scale.md shows is what happens, and its arithmetic is right."""

import re
import subprocess
import sys

import pytest
from pages import ROOT, blocks, page

from caltest._parallel import _MOST, BRANCHES
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
    assert f"blocks of {ROWS:,} rows: {-(-(10**9) // ROWS):,} blocks".replace(",", " ") in PAGE
    for per_second, hours in [(57_000, 5), (13_000, 21), (6_500, 42)]:
        assert 10**9 / per_second / 3600 == pytest.approx(hours, rel=0.03)
    for seconds, per_second in [(0.072, 57_000), (0.31, 13_000), (0.63, 6_500)]:
        assert ROWS / seconds == pytest.approx(per_second, rel=0.03)
    for megabytes, total in [(0.008, 2e9), (20.5, 5e12), (49.2, 12e12)]:
        assert megabytes * 1e6 * 10**9 / ROWS == pytest.approx(total, rel=0.03)
    run = BRANCHES**2 * ROWS
    assert f"(64: {run:,} rows)".replace(",", " ") in PAGE
    assert f"{-(-(10**9) // run):,} runs".replace(",", " ") in PAGE
    for megabytes, total in [(0.008, 31e6), (20.5, 78e9), (49.2, 188e9)]:
        assert megabytes * 1e6 * 10**9 / run == pytest.approx(total, rel=0.03)
    for total, minutes, per_second in [(78e9, 20, 65e6), (188e9, 40, 80e6)]:
        assert total / (60 * minutes) == pytest.approx(per_second, rel=0.03)


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^):#]+)\)", PAGE):
        assert (ROOT / "docs" / target).exists(), target
