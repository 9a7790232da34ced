"""Matrix-valued kernels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from caltest._arguments import arguments, real_array
from caltest._quoted import quoted
from caltest.exceptions import InputError
from caltest.kernels.base import Kernel, Parameters, Terms, check_size, merged_notes, merged_parameters
from caltest.kernels.distances import Floats
from caltest.kernels.norms import matrix_norm


@arguments()
@dataclass(frozen=True, init=False, repr=False, eq=False)
class MatrixKernel:
    r"""The matrix-valued kernel :math:`\sum_l k_l(s, t) A_l`.

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
    >>> from caltest.kernels import Exponential, Gaussian, Linear
    >>> MatrixKernel([(Exponential(), np.diag([1.0, 0.0, 0.0]))])
    MatrixKernel([(Exponential(bandwidth='median', distance='tv'), 3×3 matrix)])
    """

    parts: tuple[tuple[Kernel, Floats], ...]

    def __init__(self, parts: Iterable[tuple[Kernel, ArrayLike]]) -> None:
        pairs = list(parts) if np.iterable(parts) else [parts]
        if not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs):
            raise InputError(f"parts is {quoted(parts)}; give pairs of a kernel and an m×m matrix.")
        kernels = [kernel for kernel, _ in pairs]
        for i, kernel in enumerate(kernels):
            if not isinstance(kernel, Kernel):
                raise InputError(
                    f"Part {i} of the matrix kernel has {quoted(kernel)} as its kernel; "
                    "use a real-valued kernel such as Exponential()."
                )
        matrices = [_psd_matrix(matrix, i) for i, (_, matrix) in enumerate(pairs)]
        sizes = sorted({len(matrix) for matrix in matrices})
        if not sizes:
            raise InputError("The matrix kernel has no parts; give at least one kernel and its matrix.")
        if len(sizes) > 1:
            raise InputError(
                f"The matrices of the matrix kernel have {' and '.join(map(str, sizes))} rows; "
                "give them all m×m for m classes."
            )
        for kernel, matrix in zip(kernels, matrices, strict=True):
            if matrix.any():
                check_size(kernel.bound * float(np.abs(matrix).max()))
        object.__setattr__(self, "parts", tuple(zip(kernels, matrices, strict=True)))

    def fitted(self, probs: ArrayLike) -> MatrixKernel:
        """Replace bandwidth rules by numbers read off the predictions ``probs`` (n, m)."""
        probs = np.asarray(probs, dtype=np.float64)
        self._check_classes(probs.shape[1])
        return MatrixKernel((kernel.fitted(probs), matrix) for kernel, matrix in self.parts)

    @property
    def terms(self) -> Terms:
        """The pairs (k_l, A_l)."""
        return self.parts

    @property
    def parameters(self) -> Parameters:
        """What the kernels were computed with, flat and fit for JSON."""
        return merged_parameters(kernel for kernel, _ in self.parts)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know about the fit, one sentence each."""
        return merged_notes(kernel for kernel, _ in self.parts)

    def norm_bound(self, p: float, q: float, m: int) -> float:
        """Bound the norm of the kernel, from l_p to l_q on ``m`` classes, over the simplex."""
        self._check_classes(m)
        return sum(kernel.bound * matrix_norm(matrix, p, q) for kernel, matrix in self.parts)

    def _check_classes(self, m: int) -> None:
        size = len(self.parts[0][1])
        if size != m:
            raise InputError(
                f"The matrices of the matrix kernel are {size}×{size}, but there are {m} classes; "
                f"give {m}×{m} matrices."
            )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MatrixKernel) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[tuple[Kernel, bytes], ...]:
        return tuple((kernel, matrix.tobytes()) for kernel, matrix in self.parts)

    def __repr__(self) -> str:
        pairs = (f"({k!r}, {len(a)}×{len(a)} matrix)" for k, a in self.parts)
        return f"MatrixKernel([{', '.join(pairs)}])"


AnyKernel: TypeAlias = Kernel | MatrixKernel
"""What a statistic takes: ``fitted``, ``terms``, ``parameters``, ``notes``, ``norm_bound``."""


def _psd_matrix(matrix: ArrayLike, part: int) -> Floats:
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
