"""What the tests share: small data, independent draws, complete enumeration, binomial limits."""

import json
from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from caltest import InputError
from caltest._parallel import ALONE
from caltest.kernels import Exponential, Gaussian, Linear, LinearGaussian, MatrixKernel
from caltest.nulls import MonteCarlo
from caltest.nulls.base import Trial
from caltest.tolerance import sided_answer

P6 = np.array(
    [
        [0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.3, 0.5], [0.6, 0.3, 0.1], [0.25, 0.25, 0.5],
        [0.05, 0.15, 0.8],
    ]
)  # fmt: skip
Y6 = np.array([0, 1, 0, 0, 2, 2])


@cache
def runner():
    """Run the command line in this process: its options are made once, which takes long."""
    from typer import testing

    testing._get_command = cache(testing._get_command)
    return testing.CliRunner()


def command(*arguments):
    """Run the command line in this process: what it prints, and its exit status."""
    from caltest.cli import app

    return runner().invoke(app, [str(argument) for argument in arguments])


def ran(*arguments, code=(0, 1)):
    """Run the command line in this process, and check its exit status."""
    found = command(*arguments)
    assert found.exit_code in code, found.output
    return found


def strict_json(text):
    """Read JSON that any program could read."""

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def refused(result, words):
    """Check that a command printed one line on standard error, which says this."""
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1


def sentence(call, message):
    """Check that a call is refused in one sentence, which says this."""
    with pytest.raises(InputError, match=message) as raised:
        call()
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) <= 500


def some_fast(cases, *fast, mark="slow"):
    """Cases of which these are in the fast tests, the others under a mark."""
    marked = getattr(pytest.mark, mark)
    return [case if case in fast else pytest.param(case, marks=marked) for case in cases]


def dirichlet(n, m, seed, alpha=1.0):
    """Smooth predictions, without ties."""
    return np.random.default_rng(seed).dirichlet(np.full(m, alpha), n)


def tied(n, m, seed):
    """Predictions on a coarse grid: many equal rows, and exact zeros and ones."""
    return np.random.default_rng(seed).multinomial(2, np.full(m, 1.0 / m), n) / 2.0


def labels_from(probs, rng):
    """One label a row, drawn from the predictions without the package's sampler: as rng.choice does."""
    sums = np.cumsum(probs / probs.sum(axis=1, keepdims=True), axis=1)
    return (sums / sums[:, -1:] <= rng.random((len(sums), 1))).sum(axis=1)


def matrix_kernel(m, parts):
    """A matrix-valued kernel of one or two terms, one of them not of full rank."""
    A = np.random.default_rng(m).normal(size=(m, m))
    first, v = A @ A.T / m, np.arange(1.0, m + 1.0)
    return MatrixKernel([(Exponential(0.4), first), (LinearGaussian(0.8), np.outer(v, v) / m)][:parts])


def kernels_for(m):
    return {
        "exponential": Exponential(), "hellinger": Exponential(0.3, distance="hellinger"),
        "gaussian": Gaussian(), "linear": Linear(), "linear_gaussian": LinearGaussian(),
        "composite": Linear() + Gaussian(0.5) + 2.0 * Exponential(0.7),
        "matrix_1": matrix_kernel(m, 1), "matrix_2": matrix_kernel(m, 2),
    }  # fmt: skip


def residuals(probs, labels):
    return np.eye(probs.shape[1])[labels] - probs


def h_matrix(kernel, probs, labels):
    """h_ij = D_iᵀ k(g_i, g_j) D_j by a plain double loop."""
    n, m = probs.shape
    D = residuals(probs, labels)
    h = np.zeros((n, n))
    for part, matrix in kernel.fitted(probs).terms:
        A = np.eye(m) if matrix is None else matrix
        for i, j in np.ndindex(n, n):
            k = part(probs[i : i + 1], probs[j : j + 1])[0, 0]
            h[i, j] += k * D[i] @ A @ D[j]
    return h


def every_outcome(probs):
    """All m^n label vectors, and their probabilities under H0."""
    n, m = probs.shape
    outcomes = np.array(list(product(range(m), repeat=n)))
    return outcomes, np.prod(probs[np.arange(n), outcomes], axis=1)


def central_moments(values, weights):
    """Mean, variance and third central moment of a discrete distribution."""
    mean = weights @ values
    return mean, weights @ (values - mean) ** 2, weights @ (values - mean) ** 3


def binomial_limits(trials, chance, false_alarm=1e-4):
    """Limits that a binomial count leaves with at most this probability, half of it on each side."""
    law = binom(trials, chance)
    return law.ppf(false_alarm / 2) / trials, law.isf(false_alarm / 2) / trials


def form_within(statistic, rows, side, tolerance):
    """The form whose draws tell whether the model is wrong by more than a tolerance, on one side."""
    trial = Trial(rows, np.zeros(rows.n_samples, dtype=int), 1, 0, ALONE)
    return sided_answer(statistic, MonteCarlo(), trial, tolerance, side).question.form
