"""Operator norms between l_p spaces, exact or bounded."""

from __future__ import annotations

from math import inf

import numpy as np

from caltest.exceptions import InputError
from caltest.kernels.distances import Floats


def identity_norm(p: float, q: float, m: int) -> float:
    """Norm of the identity from l_p to l_q on ``m`` coordinates."""
    if not (p >= 1 and q >= 1):
        raise InputError(f"The norms are l_{p} and l_{q}; use exponents from 1 to infinity.")
    return max(1.0, float(np.power(float(m), 1 / q - 1 / p)))


def matrix_norm(a: Floats, p: float, q: float) -> float:
    """Bound the norm of a matrix from l_p to l_q: the best way through l_1, l_2 or l_∞."""
    m = len(a)
    return min(
        identity_norm(p, r, m) * float(np.linalg.norm(a, r)) * identity_norm(r, q, m)
        for r in (1, 2, inf)
    )
