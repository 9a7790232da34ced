"""Forms: what a statistic is once the predictions are fixed, a function of the outcomes."""

from caltest.forms.base import (
    BrownianLimit,
    ChiSquare,
    Combined,
    Component,
    Form,
    HasBrownianLimit,
    HasChiSquare,
    HasCumulantGenerator,
    HasLeadingSum,
    HasMoments,
    HasTerms,
    LabelFunction,
    LatticeTerms,
    Moments,
    TailBound,
)
from caltest.forms.cells import (
    Binned,
    BinnedDistance,
    BinnedSquares,
    GriddedDifference,
    MultiscaleBins,
    PearsonGroups,
    SmoothedResiduals,
)
from caltest.forms.low_rank import FeatureSquares
from caltest.forms.pairs import PairMean, Pairwise
from caltest.forms.paths import CumulativeDifference, Intervals, LargestError, Side
from caltest.forms.predictive import MeanOfNumbers, MeanSquare, MeanSurprise
from caltest.forms.recalibration import LogisticRecalibration, WeightedRecalibration
from caltest.forms.signs import FEWEST_CLUSTERS, Atoms, Comonotone, HasSigns, Signed, effective_clusters
from caltest.forms.sums import ClusterSums, LinearSum, Sums
