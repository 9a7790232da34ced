"""What docs/monitoring.md shows is what happens."""

from pathlib import Path

import numpy as np
import pytest
from pages import follow


@pytest.mark.slow
def test_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [
        f"{p:.3f},{rng.choice(['n', 's'])},{int(rng.random() < p)}" for p in rng.uniform(0.1, 0.6, 200)
    ]
    Path("week-1.csv").write_text("\n".join(["risk,region,outcome", *rows]) + "\n")
    follow("docs/monitoring.md")
