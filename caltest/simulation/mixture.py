"""The generative family of Widmann et al. 2019, Appendix J.2."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from caltest._arguments import anything, arguments
from caltest._seeds import Rng, seed_of
from caltest.simulation.draws import (
    ALPHA,
    N_CLASSES,
    N_SAMPLES,
    SHARE,
    Simulated,
    checked_alpha,
    checked_beta,
    equal,
    labels,
    log,
    log_dirichlet,
)


@arguments(n_samples=N_SAMPLES, n_classes=N_CLASSES)
def m1(n_samples: int = 250, n_classes: int = 10, *, rng: Rng = None) -> Simulated:
    """Draw from M1, calibrated: the label is drawn from the stated probabilities (π = 0).

    Parameters
    ----------
    n_samples
        Number of rows n. Default 250, as published.
    n_classes
        Number of classes m; α = (0.1, …, 0.1). Default 10, as published.
    rng
        None, an integer, a SeedSequence or a Generator (SPEC 7).

    Returns
    -------
    Simulated
        With ``truth`` equal to ``probs``.

    Raises
    ------
    InputError
        If there is no row, or fewer than two classes.

    References
    ----------
    Widmann, Lindsten and Zachariah (2019). Calibration tests in multi-class classification: a
    unifying framework. NeurIPS 32, Appendix J.2.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import m1
    >>> calibrated = m1(rng=3)
    >>> caltest.test(calibrated.probs, calibrated.labels, rng=4).rejects(0.01)
    False
    """
    return mixture(n_samples, equal(n_classes), pi=0.0, rng=rng)


@arguments(n_samples=N_SAMPLES, n_classes=N_CLASSES)
def m2(n_samples: int = 250, n_classes: int = 10, *, rng: Rng = None) -> Simulated:
    """Draw from M2: half of the labels are of the first class whatever is stated (π = ½, β = e_1).

    Parameters
    ----------
    n_samples, n_classes, rng
        As in :func:`m1`.

    Returns
    -------
    Simulated
        With ``truth`` (g + e_1)/2.

    Raises
    ------
    InputError
        If there is no row, or fewer than two classes.

    References
    ----------
    Widmann et al. 2019, Appendix J.2.

    Examples
    --------
    >>> from caltest.simulation import m2
    >>> int((m2(n_samples=1000, rng=0).labels == 0).sum())
    537
    """
    return mixture(n_samples, equal(n_classes), pi=0.5, beta=np.eye(1, n_classes)[0], rng=rng)


@arguments(n_samples=N_SAMPLES, n_classes=N_CLASSES)
def m3(n_samples: int = 250, n_classes: int = 10, *, rng: Rng = None) -> Simulated:
    """Draw from M3: every class is equally likely whatever is stated (π = 1, β uniform).

    Parameters
    ----------
    n_samples, n_classes, rng
        As in :func:`m1`.

    Returns
    -------
    Simulated
        With a uniform ``truth``.

    Raises
    ------
    InputError
        If there is no row, or fewer than two classes.

    References
    ----------
    Widmann et al. 2019, Appendix J.2.

    Examples
    --------
    >>> from caltest.simulation import m3
    >>> m3(n_samples=1, n_classes=4, rng=0).truth
    array([[0.25, 0.25, 0.25, 0.25]])
    """
    return mixture(n_samples, equal(n_classes), pi=1.0, rng=rng)


@arguments(n_samples=N_SAMPLES, alpha=anything, pi=SHARE)
def mixture(
    n_samples: int = 250,
    alpha: ArrayLike = ALPHA,
    *,
    pi: float,
    beta: ArrayLike | None = None,
    rng: Rng = None,
) -> Simulated:
    """Draw g ~ Dir(α), Z ~ Ber(π) and Y ~ Cat(β) if Z, Y ~ Cat(g) else.

    Parameters
    ----------
    n_samples
        Number of rows n. Default 250, as published.
    alpha
        Dirichlet parameters (m,). Default (0.1, …, 0.1) of ten classes, as published.
    pi
        Share of the rows whose label has nothing to do with g, in [0, 1]; 0 is calibrated.
    beta
        Distribution (m,) of those labels. Default None: uniform.
    rng
        None, an integer, a SeedSequence or a Generator (SPEC 7).

    Returns
    -------
    Simulated
        With ``truth`` (1 − π) g + π β.

    Raises
    ------
    InputError
        If there is no row, or a parameter is outside its range.

    References
    ----------
    Widmann et al. 2019, Appendix J.2.

    Examples
    --------
    >>> from caltest.simulation import mixture
    >>> mixture(2, [1.0, 1.0], pi=1.0, beta=[0.25, 0.75], rng=0).truth
    array([[0.25, 0.75],
           [0.25, 0.75]])
    """
    a = checked_alpha(alpha)
    b = checked_beta(beta, len(a))
    seed = seed_of(rng)
    probs = np.exp(log_dirichlet(n_samples, a, seed))
    truth = (1.0 - pi) * probs + pi * b
    return Simulated(probs, labels(log(truth), seed), truth)
