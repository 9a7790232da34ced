"""`assert_calibrated`: an audit as a test of one's own, in pytest or anywhere."""

from __future__ import annotations

from typing import Any

from caltest._arguments import arguments
from caltest._sampling import Rng
from caltest.auditing import Audit, audit
from caltest.text.audit import failure


@arguments()
def assert_calibrated(
    probs: object, labels: object, *, alpha: float = 0.05, rng: Rng = 0, **options: Any
) -> Audit:
    """Fail if a model is found to be miscalibrated.

    Parameters
    ----------
    probs, labels
        (n, m) or (n,) probabilities and (n,) labels, as of :func:`caltest.audit`.
    alpha
        Level: a calibrated model fails with at most this probability, over all findings together.
        Default 0.05. In a test that runs often choose a smaller one, with enough draws for it.
    rng
        As of :func:`caltest.audit`, but 0 by default: on the same data a test says the same.
    **options
        All others of :func:`caltest.audit`: ``groups``, ``lenses``, ``statistics``, ``tolerance``, ….

    Returns
    -------
    Audit
        If calibration (within the tolerance) is not rejected. That is no proof of it.

    Raises
    ------
    AssertionError
        If it is rejected. The message is the audit's summary, with the call that repeats it.
    InputError
        A ValueError. If the input is wrong: that is no finding.

    Examples
    --------
    >>> import caltest
    >>> digits = caltest.datasets.load_digits_predictions("neural_network")
    >>> found = caltest.assert_calibrated(digits.probs, digits.labels, lenses=["top_label"])
    >>> found.pvalue > 0.05
    True

    >>> forest = caltest.datasets.load_digits_predictions("random_forest")
    >>> caltest.assert_calibrated(forest.probs, forest.labels, tolerance=0.02, lenses=["top_label"])
    Traceback (most recent call last):
    AssertionError: the model is miscalibrated beyond the tolerance of 0.02, p = 0.002 at alpha = 0.05
    ...
    """
    __tracebackhide__ = True  # pytest then shows the line of the test
    found = audit(probs, labels, alpha=alpha, rng=rng, **options)
    if found.rejected:
        raise AssertionError(failure(found))
    return found
