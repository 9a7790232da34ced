"""Power of every (statistic, null) pair: how often are miscalibrated models rejected?

``python -m validation.power --repetitions 2000 --jobs 2``

M2, M3 and M1 sharpened by t = 0.8, 250 rows, ten classes; then four errors of 500 rows, three and ten
classes: a temperature too high and one too low, a bias of 0.3 on the log-odds of one class, and noise
of standard deviation 0.7 on the logits.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from caltest.simulation import classwise, m2, m3, noisy, tempered
from validation._study import RESULTS, Design, cells, markdown, parser, write_csv

LEVEL = 0.05


def errors(m: int) -> tuple[Design, ...]:
    """Return four ways to err, 500 rows of Dir(0.1)."""
    alpha = [0.1] * m
    return (
        Design(f"t=1.25, m={m}", lambda s: tempered(500, alpha, temperature=1.25, rng=s)),
        Design(f"t=0.8, m={m}", lambda s: tempered(500, alpha, temperature=0.8, rng=s)),
        Design(f"bias 0.3, m={m}", lambda s: classwise(500, alpha, bias=0.3, rng=s)),
        Design(f"noise 0.7, m={m}", lambda s: noisy(500, alpha, scale=0.7, truth_draws=2, rng=s)),
    )


DESIGNS = (
    Design("M2", lambda seed: m2(rng=seed)),
    Design("M3", lambda seed: m3(rng=seed)),
    Design("M1 sharpened, t=0.8", lambda seed: tempered(temperature=0.8, rng=seed)),
    *errors(3),
    *errors(10),
)


def main() -> None:
    """Run the study, write the CSV and print the table."""
    options = parser(__doc__.splitlines()[0], "power.csv").parse_args()
    rows: list[dict[str, Any]] = []
    table: dict[tuple[str, str], dict[str, Any]] = defaultdict(dict)
    for design, example, cell in cells(DESIGNS, options):
        n, m = example.probs.shape
        row = cell.row(LEVEL)
        what = {"statistic": cell.statistic, "null": cell.null, "guarantee": cell.guarantee}
        rows.append(what | {"design": design.name, "m": m, "n": n} | row)
        entry = table[cell.statistic, cell.null]
        entry |= what | {design.name: f"{row['rate']:.3f} ({row['low']:.3f}–{row['high']:.3f})"}
        write_csv(rows, RESULTS / options.results)
    print(markdown(list(table.values())))


if __name__ == "__main__":
    main()
