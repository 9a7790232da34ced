"""Forms: what a statistic is once the predictions are fixed, a function of the labels."""

from caltest.forms.additive import Additive, Linear
from caltest.forms.base import (
    ChiSquare,
    Form,
    HasChiSquare,
    HasCumulantGenerator,
    HasGram,
    HasMoments,
    HasTailBound,
    HasTerms,
    Moments,
    TailBound,
)
from caltest.forms.binned import Binned, BinnedDistance, BinnedSquares
from caltest.forms.label_function import LabelFunction
from caltest.forms.pair_mean import PairMean
from caltest.forms.pairwise import BoundedPairwise, Pairwise, UStatistic
from caltest.forms.weights import ConstantWeights, KernelWeights, Term, Weights

__all__ = [
    "Additive",
    "Binned",
    "BinnedDistance",
    "BinnedSquares",
    "BoundedPairwise",
    "ChiSquare",
    "ConstantWeights",
    "Form",
    "HasChiSquare",
    "HasCumulantGenerator",
    "HasGram",
    "HasMoments",
    "HasTailBound",
    "HasTerms",
    "KernelWeights",
    "LabelFunction",
    "Linear",
    "Moments",
    "PairMean",
    "Pairwise",
    "TailBound",
    "Term",
    "UStatistic",
    "Weights",
]
