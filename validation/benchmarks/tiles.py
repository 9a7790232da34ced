"""The size of tiles: nanoseconds a pair of rows, beside what the processor can do at most.

``python -m validation.benchmarks.tiles``: one core, the shortest of several runs in CPU seconds, ten
classes, Dirichlet(1) predictions. Of every size of tile

* exp, product: an exponential a number, and a product with ten columns, of a tile that is there
  already: the limit of a Gaussian estimate is their sum;
* gaussian, tv: SKCE_uq of 4 000 rows with kernels of given bandwidth;
* labels, residuals: one label vector of 256 by adding rows of the kernel matrix (ten classes) and by
  a product with residuals (two classes); labels_single with 16 binary digits in single precision;
* moments: the sums of the analytic null, with its probes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from caltest._tiles import sum_over_strips, sum_over_tiles
from caltest.data import Rows
from caltest.forms import KernelWeights, Pairwise
from caltest.forms._pair_moments import IdentitySums
from caltest.forms.pairs import LabelSums, ResidualSums
from caltest.forms.weights import without_diagonal
from caltest.kernels import Exponential, Gaussian, Kernel
from caltest.statistics import UnbiasedSKCE
from validation._study import RESULTS, markdown, write_csv

ROWS, FEW_ROWS, DRAWS, CLASSES = 4_000, 2_000, 256, 10
SIZES = (128, 192, 256, 384, 512, 768, 1024)


def shortest(work: Callable[[], Any], count: float, repetitions: int) -> float:
    """Return nanoseconds for one of ``count`` things."""
    taken = []
    for _ in range(repetitions):
        start = process_time()
        work()
        taken.append(process_time() - start)
    return round(min(taken) / count * 1e9, 4)


def limits(size: int, repetitions: int) -> dict[str, float]:
    """Return what a tile costs at least."""
    rng = np.random.default_rng(0)
    tile, points = rng.random((size, size)), rng.random((size, CLASSES))
    out, columns = np.empty_like(tile), np.ascontiguousarray(points.T)
    times = max(1, 2**22 // size**2)

    def exponentials() -> None:
        for _ in range(times):
            np.exp(tile, out=out)

    def products() -> None:
        for _ in range(times):
            np.matmul(points, columns, out=out)

    count = times * size**2
    return {
        "exp": shortest(exponentials, count, repetitions),
        "product": shortest(products, count, repetitions),
    }


def form_of(kernel: Kernel, n: int, m: int) -> tuple[Pairwise, NDArray[Any]]:
    """Return a form and 256 label vectors drawn from its predictions."""
    predictions = Rows(np.random.default_rng(1).dirichlet(np.ones(m), n))
    form = UnbiasedSKCE(kernel).given(predictions)
    assert isinstance(form, Pairwise)
    return form, predictions.sampler(0).draw(0, DRAWS)


def row(size: int, repetitions: int) -> dict[str, Any]:
    """Measure everything with tiles of one size."""
    found: dict[str, Any] = {"size": size, **limits(size, repetitions)}
    pairs = ROWS**2 / 2
    for name, kernel in (("gaussian", Gaussian(0.3)), ("tv", Exponential(0.3))):
        form, labels = form_of(kernel, ROWS, CLASSES)
        one = partial(form._tile_sum, labels[0].astype(np.intp))
        work = partial(sum_over_tiles, one, ROWS, size=size)
        found[name] = shortest(work, pairs, repetitions)
    weights = form.kernel_terms[0].weights
    assert isinstance(weights, KernelWeights)
    moments = IdentitySums(form.probs, np.zeros_like(form.probs), weights)
    found["moments"] = shortest(partial(sum_over_tiles, moments, ROWS, size=size), pairs, repetitions)
    pairs_and_draws = FEW_ROWS**2 / 2 * DRAWS
    form, labels = form_of(Gaussian(0.3), FEW_ROWS, CLASSES)
    weights = form.kernel_terms[0].weights
    for name, dtype in (("labels", np.float64), ("labels_single", np.float32)):
        sums = LabelSums(without_diagonal(weights, dtype), labels, CLASSES, None, dtype)
        work = partial(sum_over_strips, sums, FEW_ROWS, size=size)
        found[name] = shortest(work, pairs_and_draws, repetitions)
    form, labels = form_of(Gaussian(0.3), FEW_ROWS, 2)
    tile = without_diagonal(form.kernel_terms[0].weights)
    products = ResidualSums(tile, labels, form._coordinates[0])
    work = partial(sum_over_strips, products, FEW_ROWS, size=size)
    found["residuals"] = shortest(work, pairs_and_draws, repetitions)
    return found


def main() -> None:
    """Write the table, and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=7)
    chosen = parser.parse_args()
    with threadpool_limits(1):
        rows = [row(size, chosen.repetitions) for size in SIZES]
    write_csv(rows, RESULTS / "tiles.csv")
    print(markdown(rows))


if __name__ == "__main__":
    main()
