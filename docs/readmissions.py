"""Make readmissions.csv, the README's example: ``python docs/readmissions.py``.

Patients, the risk that a model gave each of being readmitted, and whether they were. The model predicts
too high everywhere, and much too high for patients of 75 and older in the hospital "south".
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit, logit

FILE = Path(__file__).with_suffix(".csv")
ROWS = 5000


def table() -> pd.DataFrame:
    """Draw the rows."""
    rng = np.random.default_rng(1)
    age = rng.normal(64, 14, ROWS).clip(18, 95).round().astype(int)
    hospital = rng.choice(["north", "south", "east", "west"], ROWS)
    stay = (1 + rng.gamma(2, 2.5, ROWS)).clip(1, 40).round().astype(int)
    true = expit(-1.2 + 0.025 * (age - 62) + 0.05 * (stay - 6) + rng.normal(0, 0.9, ROWS))
    worse = (age >= 75) & (hospital == "south")
    risk = expit(1.4 * logit(true) + np.where(worse, 1.85, 0.55))
    readmitted = (rng.random(ROWS) < true).astype(int)
    columns = {"risk": risk.round(3), "readmitted": readmitted, "age": age}
    return pd.DataFrame(columns | {"hospital": hospital, "stay": stay})


if __name__ == "__main__":
    table().to_csv(FILE, index=False)
