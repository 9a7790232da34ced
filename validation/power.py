"""Power of every (statistic, null) pair: how often are miscalibrated models rejected?

``python -m validation.power --repetitions 2000 --jobs 2``

M2, M3 and M1 sharpened by t = 0.8, 250 rows, ten classes.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from caltest.simulation import m2, m3, tempered
from validation._study import RESULTS, Design, cells, markdown, parser, write_csv

LEVEL = 0.05

DESIGNS = (
    Design("M2", lambda seed: m2(rng=seed)),
    Design("M3", lambda seed: m3(rng=seed)),
    Design("M1 sharpened, t=0.8", lambda seed: tempered(temperature=0.8, rng=seed)),
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
