"""The record's calls of `caltest.test`: statistics, nulls, lenses, alternatives, tolerances."""

import inspect
from functools import partial
from typing import Any

import numpy as np
from record_base import BINARY, DESIGNS, DRAWS, M3, TIED, ZEROS, call, dirichlet, too_sure

import caltest
from caltest import binning, kernels, nulls, statistics


def ask(name, data, statistic=None, **options):
    asked = () if statistic is None else (statistic,)
    call(f"test/{name}", caltest.test, *data, *asked, **({"n_resamples": DRAWS} | options))


_VECTOR = "skce_uq skce_b skce_ul ckce jkce ece mce ece_squared ecd log_score brier spiegelhalter"
_ONE = (
    "mmce ace esce ece_debiased smooth_ece mcb_brier mcb_log ks kuiper scan max_bin hosmer_lemeshow "
    "citl cox"
)
VECTOR, ONE = _VECTOR.split(), _ONE.split()  # those of full vectors, those of one probability
STATISTICS = ["omnibus", *VECTOR, *ONE]

# Every statistic with every null that it accepts; what is not accepted is one call a null.
_BY_MOMENTS = (
    "skce_uq skce_b skce_ul mmce ckce jkce esce ece_squared ece_debiased ecd log_score brier "
    "spiegelhalter hosmer_lemeshow citl"
)
NULLS = {
    "monte_carlo": STATISTICS,
    "moments": _BY_MOMENTS.split(),
    "normal": ["skce_ul", "esce", "ecd", "log_score", "brier", "spiegelhalter", "citl"],
    "chi2": ["hosmer_lemeshow", "cox"],
    "brownian": ["ks", "kuiper"],
    "bootstrap": ["skce_uq", "jkce"],
    "bound": ["skce_uq", "skce_b", "skce_ul", "mmce", "jkce"],
    "consistency": ["skce_uq", "skce_b", "ckce", "ece", "ks", "ecd", "citl", "smooth_ece"],
}
SHOWN = {
    "monte_carlo": ["binary", "m3", "m10", "tied", "zeros"],
    "moments": ["binary", "m3", "m10", "tied", "zeros", "sure"],
    "normal": ["binary", "m3", "tied", "sure"],
}


def possible(null):
    """Which statistics go with a null."""
    found = {}
    for statistic in STATISTICS:
        try:
            caltest.test(M3[0][:20], M3[1][:20], statistic, null=null, n_resamples=5, rng=0)
        except caltest.InputError:
            found[statistic] = False
        else:
            found[statistic] = True
    return found


for _null, _names in NULLS.items():
    call(f"possible/{_null}", possible, _null, keep=dict)
    for _name in _names:
        for _design in SHOWN.get(_null, ["binary", "m3"]):
            ask(f"{_name}/{_null}/{_design}", DESIGNS[_design], _name, null=_null)
for _name in ("ucme", "t_cal"):
    for _design in (*SHOWN["monte_carlo"], "sure", "impossible"):
        ask(f"{_name}/monte_carlo/{_design}", DESIGNS[_design], _name)
    ask(f"{_name}/monte_carlo/m3/class:1", M3, _name, lens="class:1")
for _design in ("binary", "m3", "tied"):
    ask(f"ucme/moments/{_design}", DESIGNS[_design], "ucme", null="moments")
ask("default/monte_carlo/m3", M3)
ask("default/moments/m3", M3, null="moments")

for _name in ("omnibus", "skce_uq", "ecd", "ks", "ece"):
    ask(f"{_name}/monte_carlo/named", DESIGNS["named"], _name)
    ask(f"{_name}/monte_carlo/named/class:dog", DESIGNS["named"], _name, lens="class:dog")
for _name in ("omnibus", "skce_uq", "ckce", "ece", "ks", "ecd", "scan", "mcb_brier", "cox"):
    ask(f"{_name}/monte_carlo/sure", DESIGNS["sure"], _name)
for _name in ("omnibus", "skce_uq", "ecd", "log_score", "brier", "cox", "mcb_log"):
    ask(f"{_name}/monte_carlo/impossible", DESIGNS["impossible"], _name)

# Lenses.
for _name in STATISTICS:
    ask(f"{_name}/monte_carlo/m3/class:1", M3, _name, lens="class:1")
for _name in ("omnibus", *VECTOR):
    ask(f"{_name}/monte_carlo/m3/top_label", M3, _name, lens="top_label")
    ask(f"{_name}/monte_carlo/m3/sorted", M3, _name, lens="sorted")
for _name in ("omnibus", "skce_uq", "ece", "ecd", "ks", "scan", "citl", "hosmer_lemeshow"):
    ask(f"{_name}/monte_carlo/m10/top:2", DESIGNS["m10"], _name, lens="top:2")
for _name in ("skce_uq", "ecd", "citl", "ece_squared"):
    ask(f"{_name}/moments/m3/top_label", M3, _name, null="moments", lens="top_label")
    ask(f"{_name}/moments/m10/class:1", DESIGNS["m10"], _name, null="moments", lens="class:1")

# Alternatives; those that a statistic does not have are refused.
for _side in ("greater", "less", "two-sided"):
    for _name in ("ecd", "citl", "esce", "spiegelhalter", "skce_uq", "ks"):
        ask(f"{_name}/monte_carlo/m3/{_side}", M3, _name, alternative=_side)
    for _name in ("ecd", "citl", "esce"):
        ask(f"{_name}/moments/m3/{_side}", M3, _name, alternative=_side, null="moments")
    for _name in ("brier", "skce_ul"):
        ask(f"{_name}/normal/m3/{_side}", M3, _name, alternative=_side, null="normal")

# Tolerances.
for _side in ("over", "under", "two-sided"):
    for _name in ("scan", "max_bin", "citl", "esce"):
        _options = {"alternative": _side, "tolerance": 0.05}
        ask(f"tolerance/{_name}/binary/{_side}", BINARY, _name, **_options)
        ask(f"tolerance/{_name}/m3/{_side}", M3, _name, **(_options | {"tolerance": 0.02}))
    ask(f"tolerance/default/tied/{_side}", TIED, tolerance=0.1, alternative=_side)
    ask(f"tolerance/scan/zeros/{_side}", ZEROS, "scan", tolerance=0.05, alternative=_side)
ask("tolerance/default/m3/over/none", M3, alternative="over")
ask("tolerance/scan/m3/class:1", M3, "scan", tolerance=0.05, alternative="under", lens="class:1")
ask("tolerance/scan/m3/zero", M3, "scan", tolerance=0.0)
ask("tolerance/ks/m3", M3, "ks", tolerance=0.05)


# Options of statistics.
def sure_and_wrong(probs, labels):
    """A statistic of a user's own."""
    top = probs.argmax(axis=1)
    return float(np.mean((probs.max(axis=1) > 0.6) & (top != labels)))


#: Consecutive pairs of rows, however a future default pairs them.
_BY_ROWS: dict[str, Any] = (
    {"pairing": "rows"} if "pairing" in inspect.signature(statistics.LinearSKCE).parameters else {}
)
_MATRIX = kernels.MatrixKernel(
    [(kernels.Exponential(0.4), np.diag([1.0, 2.0, 3.0])), (kernels.Gaussian(0.6), np.eye(3))]
)
_ONE_MATRIX = kernels.MatrixKernel([(kernels.Gaussian(0.5), np.diag([1.0, 2.0, 3.0]))])
_KERNELS = {
    "exponential": kernels.Exponential(),
    "hellinger": kernels.Exponential(0.3, distance="hellinger"),
    "gaussian": kernels.Gaussian(),
    "linear": kernels.Linear(),
    "linear_gaussian": kernels.LinearGaussian(0.5),
    "composite": kernels.Linear() + 2.0 * kernels.Exponential(0.7),
    "matrix": _MATRIX,
    "median_full": kernels.Gaussian("median_full"),
    "mean": kernels.Exponential("mean"),
    "unknown": kernels.LinearGaussian,  # not an object of it
}
for _name, _kernel in _KERNELS.items():
    ask(f"skce_uq/kernels/{_name}", M3, partial(statistics.UnbiasedSKCE, _kernel))
    ask(f"skce_b/kernels/{_name}", M3, partial(statistics.BiasedSKCE, _kernel))
ask("skce_uq/moments/m3/matrix_kernel", M3, partial(statistics.UnbiasedSKCE, _MATRIX), null="moments")
_gaussian = partial(statistics.UnbiasedSKCE, kernels.Gaussian())
ask("skce_uq/moments/tied/gaussian", TIED, _gaussian, null="moments")
ask("skce_ul/kernels/gaussian", M3, partial(statistics.LinearSKCE, kernels.Gaussian(0.3)))
for _design in ("binary", "m3", "m10", "tied", "zeros"):
    for _null in ("monte_carlo", "normal"):
        _linear = partial(statistics.LinearSKCE, **_BY_ROWS)
        ask(f"skce_ul_by_rows/{_null}/{_design}", DESIGNS[_design], _linear, null=_null)

_FEW_COLUMNS = {"rank": 8}
OPTIONS = {
    "skce_uq/nystrom": partial(statistics.UnbiasedSKCE, approximation="nystrom", **_FEW_COLUMNS),
    "skce_uq/fourier": partial(statistics.UnbiasedSKCE, approximation="fourier", **_FEW_COLUMNS),
    "skce_uq/auto": partial(statistics.UnbiasedSKCE, approximation="auto"),
    "skce_b/nystrom": partial(statistics.BiasedSKCE, approximation="nystrom", **_FEW_COLUMNS),
    "skce_b/fourier": partial(
        statistics.BiasedSKCE, kernels.Gaussian(0.4), approximation="fourier", rank=8
    ),
    "skce_uq/nystrom_matrix": partial(statistics.UnbiasedSKCE, _ONE_MATRIX, approximation="nystrom"),
    "jkce/nystrom": partial(statistics.JKCE, approximation="nystrom", **_FEW_COLUMNS),
    "mmce/gaussian": partial(statistics.MMCE, kernels.Gaussian(0.2)),
    "ckce/given": partial(statistics.CKCE, kernels.Gaussian(0.4), regularization=0.05),
    "ckce/nystrom": partial(statistics.CKCE, method="nystrom"),
    "ckce/features": partial(statistics.CKCE, features=12),
    "ckce/fourier": partial(statistics.CKCE, method="fourier", features=20, seed=3),
    "ckce/groups_text": partial(statistics.CKCE, groups=np.where(np.arange(120) % 3 == 0, "a", "b")),
    "ckce/groups_integers": partial(statistics.CKCE, groups=np.arange(120) % 4),
    "ckce/groups_floats": partial(statistics.CKCE, groups=np.random.default_rng(3).random(120)),
    "ckce/groups_nystrom": partial(statistics.CKCE, groups=np.arange(120) % 4, method="nystrom"),
    "ckce/groups_too_few": partial(statistics.CKCE, groups=[0, 1]),
    "ckce/matrix": partial(statistics.CKCE, _ONE_MATRIX),
    "ece/l1": partial(statistics.ECE, distance="l1"),
    "ece/l2": partial(statistics.ECE, binning.EqualWidth(7), distance="l2"),
    "ece/sqeuclidean": partial(statistics.ECE, binning.EqualMass(5), distance="sqeuclidean"),
    "ece/median_variance": partial(statistics.ECE, binning.MedianVariance(10)),
    "ece/uniform": partial(statistics.ECE, binning.Uniform(4)),
    "mce/uniform": partial(statistics.MCE, binning.Uniform(3)),
    "ece_squared/mass": partial(statistics.SquaredECE, binning.EqualMass(6)),
    "ece_squared/edges": partial(statistics.SquaredECE, binning.FromEdges([0, 0.5, 0.6, 1.0])),
    "ece_debiased/mass": partial(statistics.DebiasedECE, binning.EqualMass(6)),
    "ace/l2": partial(statistics.ACE, binning.EqualMass(5), distance="l2"),
    "smooth_ece/grid": partial(statistics.SmoothECE, grid=64),
    "scan/over": partial(statistics.Scan, side="over"),
    "scan/under": partial(statistics.Scan, side="under"),
    "t_cal/min_rows": partial(statistics.TCal, 4),
    "max_bin/over": partial(statistics.LargestBinError, side="over", binning=binning.EqualMass(4)),
    "ecd/clip": partial(statistics.ECD, clip=0.05),
    "log_score/clip": partial(statistics.LogScore, clip=0.05),
    "hosmer_lemeshow/groups": partial(statistics.HosmerLemeshow, groups=4),
    "omnibus/multiples": partial(statistics.Omnibus, multiples=[0.5, 2.0, 4.0]),
    "omnibus/gaussian": partial(statistics.Omnibus, kernel=kernels.Exponential(0.2)),
    "omnibus/nystrom": partial(statistics.Omnibus, approximation="nystrom"),
    "function/own": sure_and_wrong,
}
_OF_ONE = ("l2", "sqeuclidean", "mass", "edges")  # bins that are of one probability
_WITHOUT_DRAWS = ("skce_uq", "skce_b", "jkce", "mmce", "ckce", "ece_squared", "ece_debiased", "ecd")
for _name, _statistic in OPTIONS.items():
    _kind, _option = _name.split("/")
    _lens = {"lens": "class:1"} if _option in _OF_ONE else {}
    ask(f"{_kind}/options/{_option}", M3, _statistic, **_lens)
    if _kind in _WITHOUT_DRAWS and "groups" not in _option:
        ask(f"{_kind}/moments/options/{_option}", M3, _statistic, null="moments", **_lens)
for _name in ("nystrom", "fourier"):
    ask(f"skce_uq/options/zeros/{_name}", ZEROS, OPTIONS[f"skce_uq/{_name}"])
    ask(f"skce_uq/options/tied/{_name}", TIED, OPTIONS[f"skce_uq/{_name}"])
ask("ecd/options/impossible/clip", DESIGNS["impossible"], OPTIONS["ecd/clip"])
ask("function/own/m3/top_label", M3, sure_and_wrong, lens="top_label")

# Options of nulls, and of the number of draws.
ask("skce_uq/bound/m3/p1", M3, "skce_uq", null=nulls.Bound(1.0))
ask("skce_uq/bound/m3/pq", M3, "skce_uq", null=nulls.Bound(2.0, 1.0))
ask("skce_ul/normal/m3/ddof0", M3, "skce_ul", null=nulls.NormalApproximation(ddof=0))
for _name in ("ecd", "skce_uq", "ks"):
    ask(f"{_name}/monte_carlo/m3/draws_300", M3, _name, n_resamples=300)
ask("ecd/monte_carlo/wrong", (M3[0], M3[1][:-1]), "ecd")
ask("nothing/monte_carlo/m3", M3, "nothing")

# More rows than a block, a tile, or a blocked sum holds.
LARGE = too_sure(dirichlet(5000, 4, 21), 1.05, 22)
MIDDLE = too_sure(dirichlet(700, 3, 23), 1.1, 24)
for _name in ("ecd", "ks", "ece", "scan", "brier", "citl", "smooth_ece"):
    ask(f"{_name}/monte_carlo/large", LARGE, _name)
ask("omnibus/monte_carlo/middle", MIDDLE)
ask("skce_uq/monte_carlo/middle", MIDDLE, "skce_uq")
ask("skce_uq/moments/middle", MIDDLE, "skce_uq", null="moments")
ask("ckce/monte_carlo/middle", MIDDLE, "ckce")
ask("skce_uq/options/large/nystrom", LARGE, OPTIONS["skce_uq/nystrom"])
