"""Figure 1 of Moskvichev and Sejdinovic (2025): reliability of three binary models, and their CKCE.

``python -m validation ckce_figure1``: 1000 truths of Dir(1, 1), a label of each; the truth itself,
softmax(clr/2) (underconfident) and softmax(2 clr) (overconfident); ten uniform bins; CKCE with λ
= n^(−1/4) and γ half the median distance, on the same rows. The CKCE printed in the figure is not
in the text; what its caption says, that lower is better calibrated, is counted over 200 such data
sets.
"""

from __future__ import annotations

from pathlib import Path

import joblib
import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit, logit

import caltest
from caltest.plots.canvas import BLACK, BLUE, FAINT, VERMILION
from validation._cells import Options, Row, seeds, spread
from validation._study import markdown, save, write_csv
from validation.ckce_figures import errors
from validation.generative import mixture

SEED = 20_250_218
ROWS = 1000
MODELS = {"underconfident": 0.5, "calibrated": 1.0, "overconfident": 2.0}
LOOKS = {"underconfident": ("s", BLUE), "calibrated": ("o", BLACK), "overconfident": ("^", VERMILION)}


def data(seed: np.random.SeedSequence) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return the models' probabilities of class 1, and the labels."""
    drawn = mixture(ROWS, [1.0, 1.0], pi=0.0, rng=seed)
    truth = logit(drawn.probs[:, 1])
    return {name: expit(factor * truth) for name, factor in MODELS.items()}, drawn.labels


def ckce(seed: np.random.SeedSequence) -> list[float]:
    """Return the CKCE of the three models."""
    models, labels = data(seed)
    return [errors(np.column_stack([1.0 - p, p]), labels, "nystrom")["CKCE"] for p in models.values()]


def draw(path: Path) -> None:
    """Draw the first data set."""
    figure, ax = plt.subplots(figsize=(5.2, 4.8), layout="constrained")
    ax.plot([0.0, 1.0], [0.0, 1.0], color=FAINT, linewidth=0.9, linestyle=(0, (4, 3)))
    (seed,) = seeds(SEED, (1,), 0, 1)
    models, labels = data(seed)
    for (name, p), error in zip(models.items(), ckce(seed), strict=True):
        table = caltest.bin_table(p, labels).iloc[:-1]
        marker, color = LOOKS[name]
        label = f"{name}: CKCE {error:.4f}"
        ax.plot(table["confidence"], table["frequency"], marker=marker, color=color, label=label)
    ax.set(xlabel="mean probability in the bin", ylabel="share of labels", xlim=(0, 1), ylim=(0, 1))
    ax.legend(frameon=False, loc="upper left")
    ax.set_title(f"{ROWS:,} rows, ten bins", loc="left", size="medium")
    ax.spines[["top", "right"]].set_visible(False)
    save(figure, path)


def run(options: Options) -> None:
    """Count how often the calibrated model has the least CKCE, and draw."""
    if not options.wants("ckce_figure1"):
        return
    count = 5 if options.quick else 200
    with joblib.Parallel(n_jobs=options.jobs) as parallel:
        found = np.array(spread(ckce, seeds(SEED, (1,), 0, count), parallel))
    least = int((found.argmin(axis=1) == list(MODELS).index("calibrated")).sum())
    rows: list[Row] = [
        {
            "model": name,
            "mean": f"{found[:, k].mean():.5f}",
            "sd": f"{found[:, k].std(ddof=1):.5f}",
            "first": f"{found[0, k]:.5f}",
            "datasets": count,
            "calibrated_least": least,
            "seed": SEED,
            "caltest": caltest.__version__,
        }
        for k, name in enumerate(MODELS)
    ]
    write_csv(rows, options.results / "ckce_figure1.csv")
    draw(options.results / "ckce_figure1.png")
    print(markdown(rows))
