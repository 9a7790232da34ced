"""Matrix-valued kernels: sums of kernels times matrices between the classes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from caltest._arguments import arguments, real_array
from caltest._sums import Array
from caltest._visible import quoted
from caltest.exceptions import InputError
from caltest.kernels.base import Composed, Kernel, Terms, check_size, fitted, identity_norm


@arguments()
@dataclass(frozen=True, init=False, repr=False, eq=False)
class MatrixKernel(Composed):
    r"""Matrix-valued kernel, :math:`\sum_l k_l(s, t) A_l`: classes may be weighted or related.

    Parameters
    ----------
    parts
        Pairs (k_l, A_l): a real-valued kernel, and a symmetric positive semi-definite matrix (m, m)
        which says how residuals of the classes are weighed against each other. Asymmetry and
        negative eigenvalues up to 1e-10 of the matrix's scale are taken for rounding.

    Raises
    ------
    InputError
        If there is no part, or a part is not such a pair, or the matrices differ in size.

    References
    ----------
    Widmann, Lindsten and Zachariah (2019). Calibration tests in multi-class classification: a
    unifying framework. NeurIPS 32, section 4.

    Examples
    --------
    Only the first of three classes counts:

    >>> import numpy as np
    >>> from caltest.kernels import Exponential
    >>> MatrixKernel([(Exponential(), np.diag([1.0, 0.0, 0.0]))])
    MatrixKernel([(Exponential(bandwidth='median', distance='tv'), 3×3 matrix)])
    """

    parts: tuple[tuple[Kernel, Array], ...]

    def __init__(self, parts: Iterable[tuple[Kernel, ArrayLike]]) -> None:
        pairs = [*parts] if np.iterable(parts) else []
        two = [isinstance(x, tuple | list) and len(x) == 2 and isinstance(x[0], Kernel) for x in pairs]
        if not pairs or not all(two):
            do = "give pairs of a real-valued kernel, such as Exponential(), and its m×m matrix"
            raise InputError(f"parts is {quoted(parts)}; {do}.")
        checked = tuple((kernel, _psd_matrix(matrix, i)) for i, (kernel, matrix) in enumerate(pairs))
        sizes = sorted({len(matrix) for _, matrix in checked})
        if len(sizes) > 1:
            found = f"The matrices of the matrix kernel have {' and '.join(map(str, sizes))} rows"
            raise InputError(f"{found}; give them all m×m for m classes.")
        for kernel, matrix in checked:
            if matrix.any():
                check_size(kernel.bound * float(np.abs(matrix).max()))
        object.__setattr__(self, "parts", checked)

    def fitted(self, probs: ArrayLike, weights: Array | None = None) -> MatrixKernel:
        """Replace bandwidth rules by numbers read off the predictions ``probs`` (n, m)."""
        probs = np.asarray(probs, dtype=np.float64)
        self._check_classes(probs.shape[1])
        return MatrixKernel((fitted(kernel, probs, weights), matrix) for kernel, matrix in self.parts)

    @property
    def terms(self) -> Terms:
        """The pairs (k_l, A_l)."""
        return self.parts

    @property
    def kernels(self) -> tuple[Kernel, ...]:  # type: ignore[override]
        """The kernels k_l."""
        return tuple(kernel for kernel, _ in self.parts)

    def norm_bound(self, p: float, q: float, m: int) -> float:
        """Bound the norm of the kernel, from l_p to l_q on ``m`` classes, over the simplex."""
        self._check_classes(m)
        ways = [(r, identity_norm(p, r, m), identity_norm(r, q, m)) for r in (1, 2, math.inf)]
        return sum(  # the best way through l_1, l_2 or l_∞
            kernel.bound * min(a * float(np.linalg.norm(matrix, r)) * b for r, a, b in ways)
            for kernel, matrix in self.parts
        )

    def _check_classes(self, m: int) -> None:
        size = len(self.parts[0][1])
        if size != m:
            found = f"The matrices of the matrix kernel are {size}×{size}, but there are {m} classes"
            raise InputError(f"{found}; give {m}×{m} matrices.")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MatrixKernel) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[tuple[Kernel, bytes], ...]:
        return tuple((kernel, matrix.tobytes()) for kernel, matrix in self.parts)

    def __repr__(self) -> str:
        pairs = (f"({k!r}, {len(a)}×{len(a)} matrix)" for k, a in self.parts)
        return f"MatrixKernel([{', '.join(pairs)}])"


def _psd_matrix(matrix: ArrayLike, part: int) -> Array:
    """Copy a matrix, read-only, after checking that it is symmetric positive semi-definite."""
    where = f"Matrix {part} of the matrix kernel"
    a = real_array(where, matrix, "give a finite m×m matrix for m classes").copy()
    if a.ndim != 2 or a.shape[0] != a.shape[1] or not a.size or not np.all(np.isfinite(a)):
        raise InputError(f"{where} has shape {a.shape}; give a finite m×m matrix for m classes.")
    asymmetry = np.abs(a - a.T).max()
    if asymmetry > 1e-10 * np.abs(a).max():
        raise InputError(
            f"{where} is not symmetric (entries differ from their mirror images by up to "
            f"{asymmetry:.3g}); use (A + A.T) / 2."
        )
    a = (a + a.T) / 2 + 0.0  # no negative zeros: equal matrices have equal bytes
    eigenvalues = np.linalg.eigvalsh(a)
    if eigenvalues[0] < -1e-10 * np.abs(eigenvalues).max():
        raise InputError(
            f"{where} is not positive semi-definite (its smallest eigenvalue is "
            f"{eigenvalues[0]:.3g}); a kernel needs eigenvalues of at least 0."
        )
    a.flags.writeable = False
    return a
