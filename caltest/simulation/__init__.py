"""Simulated predictions and labels whose true miscalibration is known.

Every model draws g ~ Dir(α) and returns a :class:`Simulated`: what is stated, what came true, and the
truth, P(Y = k | stated probabilities). In a *mixture* (Widmann, Lindsten and Zachariah 2019, Appendix
J.2) g is stated, and the label is drawn from g with probability 1 − π and from a fixed β else; M1, M2
and M3 are its named members. *Tempered*, *local*, *classwise* and *noisy* models each go wrong in one
way that real models do.
"""

from caltest.kernels.bandwidth import mean_tv_dirichlet
from caltest.simulation.draws import ALPHA, Simulated
from caltest.simulation.errors import classwise, local, noisy, tempered
from caltest.simulation.truth import Estimate, m1, m2, m3, mixture, true_ece_tv, true_skce

__all__ = [
    "ALPHA",
    "Estimate",
    "Simulated",
    "classwise",
    "local",
    "m1",
    "m2",
    "m3",
    "mean_tv_dirichlet",
    "mixture",
    "noisy",
    "tempered",
    "true_ece_tv",
    "true_skce",
]
