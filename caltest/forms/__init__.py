"""Forms: what a statistic is once the predictions are fixed, a function of the labels."""

from caltest.forms.additive import Additive, Linear, Standardised
from caltest.forms.base import (
    ChiSquare,
    Form,
    HasChiSquare,
    HasCumulantGenerator,
    HasGram,
    HasLatticeTerms,
    HasLeadingSum,
    HasMoments,
    HasTailBound,
    HasTerms,
    LatticeTerms,
    Moments,
    TailBound,
)
from caltest.forms.binned import Binned, BinnedDistance, BinnedSquares
from caltest.forms.brownian import BrownianLimit, HasBrownianLimit
from caltest.forms.combined import Combined, Component
from caltest.forms.cumulative import CumulativeDifference
from caltest.forms.densities import DensityForm, MeanSquare, MeanSurprise
from caltest.forms.feature_squares import FeatureSquares
from caltest.forms.features import (
    ComputedFeatures,
    Features,
    FourierFeatures,
    LandmarkFeatures,
    RoundedFeatures,
    rounded,
)
from caltest.forms.gridded import Gridded, GriddedBins, GriddedDifference
from caltest.forms.label_function import LabelFunction
from caltest.forms.logistic import LogisticRecalibration
from caltest.forms.pair_mean import PairMean
from caltest.forms.pairwise import BoundedPairwise, Pairwise, UStatistic
from caltest.forms.pearson import PearsonGroups
from caltest.forms.scan import Intervals, LargestError, Side
from caltest.forms.weights import (
    ConstantWeights,
    DenseWeights,
    KernelWeights,
    LowRankWeights,
    ProductWeights,
    Term,
    Weights,
    incomplete_cholesky,
)

__all__ = [
    "Additive",
    "Binned",
    "BinnedDistance",
    "BinnedSquares",
    "BoundedPairwise",
    "BrownianLimit",
    "ChiSquare",
    "Combined",
    "ComputedFeatures",
    "Component",
    "ConstantWeights",
    "DensityForm",
    "CumulativeDifference",
    "DenseWeights",
    "FeatureSquares",
    "Features",
    "Form",
    "FourierFeatures",
    "Gridded",
    "GriddedBins",
    "GriddedDifference",
    "HasBrownianLimit",
    "HasChiSquare",
    "HasCumulantGenerator",
    "HasGram",
    "HasLeadingSum",
    "HasLatticeTerms",
    "HasMoments",
    "HasTailBound",
    "HasTerms",
    "Intervals",
    "KernelWeights",
    "LabelFunction",
    "LandmarkFeatures",
    "LargestError",
    "LatticeTerms",
    "LowRankWeights",
    "Linear",
    "LogisticRecalibration",
    "MeanSquare",
    "MeanSurprise",
    "Moments",
    "PairMean",
    "Pairwise",
    "PearsonGroups",
    "ProductWeights",
    "RoundedFeatures",
    "Side",
    "Standardised",
    "TailBound",
    "Term",
    "UStatistic",
    "Weights",
    "incomplete_cholesky",
    "rounded",
]
