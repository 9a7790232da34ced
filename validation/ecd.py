"""Sumler et al. 2025: the ECD of one probability (Figure 2) and noise on the logits (Table I).

``python -m validation ecd``. Table I: u = 0.5 u', u' uniform on (−10, 10), labels of probability
1/(1 + e^(−u)), the model says 1/(1 + e^(−u − ε)), ε ~ N(0, σ²), 10 000 rows. Every number of the
table (ten bins and the weighted sum, of ECE, ESCE and ECD) is drawn again 200 times: mean and
standard deviation, and z of the printed number. For σ = 0 they agree. **The printed columns of σ =
0.5 and 2 cannot be had from this protocol**: ECE 0.010 and 0.081 where 0.170 and 0.404 are printed,
ECD 0.013 and 0.213 where 1.29 and 4.24 are printed. No other σ gives them either
(``ecd_noise.csv``): where the ECE is 0.170 the ECD is 0.58, not 1.29, and where it is 0.404 the ECD
is 4.8, not 4.24. Do not compare with these columns.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import joblib
import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

import caltest
from caltest.plots.canvas import BLACK, BLUE, FAINT, NARROW_BAND, VERMILION
from validation._cells import Options, Row, Table, seeds, spread
from validation._study import markdown, save, write_csv

Array = NDArray[np.float64]

SEED = 20_250_501
ROWS = 10_000
MEASURES = ("ece", "esce", "ecd")
#: Printed, bins 1 to 10 and the weighted sum: ECE, ESCE, ECD.
PRINTED: dict[float, tuple[tuple[float, ...], ...]] = {
    0.0: (
        (0.0074, 0.0181, 0.0066, 0.0306, 0.0059, 0.0193, 0.0011, 0.0015, 0.0131, 0.0007, 0.0077),
        (0.0074, -0.0181, 0.0066, 0.0306, -0.0059, -0.0193, 0.0011, 0.0015, -0.0131, 0.0007, 0.0003),
        (0.0231, -0.0334, 0.0069, 0.0153, 0.0019, 0.0036, -0.0057, 0.0012, 0.0242, -0.0037, 0.0057),
    ),
    0.5: (
        (0.2194, 0.2214, 0.1432, 0.0743, 0.0399, 0.0294, 0.0911, 0.1010, 0.1574, 0.2171, 0.1702),
        (0.2194, 0.2214, 0.1432, 0.0743, 0.0399, -0.0294, -0.0911, -0.1010, -0.1574, -0.2171, 0.0035),
        (2.1406, 0.3860, 0.1582, 0.0488, 0.0099, 0.0045, 0.0597, 0.1143, 0.2771, 2.1415, 1.2901),
    ),
    2.0: (
        (0.4473, 0.3115, 0.2158, 0.1749, 0.0936, 0.0817, 0.0803, 0.2672, 0.3439, 0.4287, 0.4042),
        (0.4473, 0.3115, 0.2158, 0.1749, 0.0936, -0.0817, -0.0803, -0.2672, -0.3439, -0.4287, 0.0064),
        (4.9950, 0.5701, 0.2529, 0.1148, 0.0264, 0.0246, 0.0534, 0.3034, 0.6044, 4.8069, 4.2405),
    ),
}
SIGMAS = (0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0, 15.0, 20.0)
BINS = (*(f"bin {k}" for k in range(1, 11)), "weighted sum")


def simulated(sigma: float, rows: int, seed: np.random.SeedSequence) -> Array:
    """Return the table (11, 3) of one data set."""
    rng = np.random.default_rng(seed)
    u = 0.5 * rng.uniform(-10.0, 10.0, rows)
    labels = (rng.random(rows) < expit(u)).astype(np.intp)
    probs = expit(u + sigma * rng.normal(size=rows))
    probs = np.clip(probs, 1e-15, 1.0 - 1e-15)  # noise of σ = 10 and more reaches 0 and 1
    return caltest.bin_table(probs, labels)[list(MEASURES)].to_numpy()


def table_1(options: Options, parallel: joblib.Parallel) -> list[Row]:
    """Draw the table again and again, beside what is printed."""
    count = 5 if options.quick else 200
    rows = []
    for number, (sigma, printed) in enumerate(PRINTED.items()):
        found = np.array(
            spread(partial(simulated, sigma, ROWS), seeds(SEED, (1, number), 0, count), parallel)
        )
        for measure, name in enumerate(MEASURES):
            for place, where in enumerate(BINS):
                values = found[:, place, measure]
                theirs, mean, spread_ = printed[measure][place], values.mean(), values.std(ddof=1)
                rows.append(
                    {
                        "sigma": sigma,
                        "measure": name,
                        "bin": where,
                        "printed": theirs,
                        "mean": f"{mean:.4f}",
                        "standard_deviation": f"{spread_:.4f}",
                        "z": f"{(theirs - mean) / spread_:.1f}",
                        "datasets": count,
                        "seed": SEED,
                        "caltest": caltest.__version__,
                    }
                )
    return rows


def over_noise(options: Options, parallel: joblib.Parallel) -> list[Row]:
    """Return the weighted sums over σ."""
    count = 2 if options.quick else 50
    rows = []
    for number, sigma in enumerate(SIGMAS):
        found = np.array(
            spread(partial(simulated, sigma, ROWS), seeds(SEED, (2, number), 0, count), parallel)
        )
        means = found[:, -1].mean(axis=0)
        numbers = {name: f"{value:.4f}" for name, value in zip(MEASURES, means, strict=True)}
        rows.append({"sigma": sigma, **numbers, "datasets": count, "seed": SEED})
    return rows


def draw(rows: list[Row], path: Path) -> None:
    """Draw Figure 2, and the ECD against the ECE over σ."""
    figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.3), layout="constrained")
    _one_row(axes[0])
    _weighted_sums(axes[1], rows)
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="y", color=NARROW_BAND, alpha=0.35, linewidth=0.7)
    save(figure, path)


def _one_row(ax: Any) -> None:
    p = np.linspace(0.0001, 0.9999, 401)  # the ECD of two equal rows is that of one
    for label, color, style in ((1, BLUE, "-"), (0, VERMILION, (0, (5, 1.5)))):
        values = np.array([caltest.estimate([q, q], [label, label], "ecd") for q in p])
        ax.plot(p, values, color=color, linestyle=style, linewidth=1.7, label=f"label {label}")
    ax.axhline(-0.2785, color=FAINT, linewidth=0.9, linestyle=(0, (4, 3)))
    ax.annotate("least: −0.2785", (0.5, -0.2785), xytext=(0.5, 1.0), ha="center", size="small")
    ax.set(xlabel="probability of class 1", ylabel="ECD of one row")
    ax.legend(frameon=False)
    ax.set_title("Figure 2: the ECD of one row", loc="left", size="medium")


def _weighted_sums(ax: Any, rows: list[Row]) -> None:
    ece, ecd = (np.array([float(row[name]) for row in rows]) for name in ("ece", "ecd"))
    ax.plot(ece, ecd, "o-", color=BLUE, linewidth=1.7, markersize=4, label="the protocol, over σ")
    for row, x, y in zip(rows, ece, ecd, strict=True):
        if row["sigma"] in (0.5, 2.0, 4.0, 8.0, 15.0):
            ax.annotate(
                f"σ = {row['sigma']:g}",
                (x, y),
                xytext=(7, -5) if row["sigma"] > 1.0 else (-4, 10),
                size="small",
                textcoords="offset points",
            )
    for sigma, printed in PRINTED.items():
        label = "printed in Table I" if sigma == 0.0 else None
        ax.plot(printed[0][-1], printed[2][-1], "o", color=BLACK, mfc="none", markersize=9, label=label)
        if sigma:
            ax.annotate(
                f"“σ = {sigma:g}”",
                (printed[0][-1], printed[2][-1]),
                xytext=(-8, 6),
                ha="right",
                size="small",
                textcoords="offset points",
            )
    ax.set(xlabel="ECE", ylabel="ECD")
    ax.set_title("Table I: weighted sums", loc="left", size="medium")
    ax.legend(frameon=False, loc="upper left")


def run(options: Options) -> None:
    """Run both and draw; a table that is there is not made again."""
    if not options.wants("ecd"):
        return
    name = "ecd_table1.csv"
    with joblib.Parallel(n_jobs=options.jobs) as parallel:
        if not options.over and not (options.results / name).exists():
            write_csv(table_1(options, parallel), options.results / name)
        noise = over_noise(options, parallel)
    write_csv(noise, options.results / "ecd_noise.csv")
    draw(noise, options.results / "ecd_figure2.png")
    rows = Table(options.results / name, ("sigma", "measure", "bin")).where()
    print(markdown([row for row in rows if row["bin"] == "weighted sum"]))
    z = np.array([float(row["z"]) for row in rows if float(row["sigma"]) == 0.0])
    print(f"σ = 0: {len(z)} numbers, z: sd {z.std():.2f}, largest {np.abs(z).max():.1f}")
