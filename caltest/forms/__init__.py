"""Forms: what a statistic is once the predictions are fixed, a function of the outcomes."""

from caltest.forms.base import (
    ChiSquare,
    Form,
    HasChiSquare,
    HasCumulantGenerator,
    HasLatticeTerms,
    HasLeadingSum,
    HasMoments,
    HasTerms,
    LatticeTerms,
    Moments,
    TailBound,
)
from caltest.forms.cells import (
    Binned,
    BinnedDistance,
    BinnedSquares,
    GriddedDifference,
    LargestError,
    MultiscaleBins,
    PearsonGroups,
    SmoothedResiduals,
)
from caltest.forms.combined import Combined, Component
from caltest.forms.comonotone import FEWEST_CLUSTERS, Atoms, Comonotone, effective_clusters
from caltest.forms.function import LabelFunction
from caltest.forms.low_rank import FeatureSquares
from caltest.forms.pair_mean import PairMean
from caltest.forms.pairs import Pairwise
from caltest.forms.paths import (
    BrownianLimit,
    CumulativeDifference,
    HasBrownianLimit,
    Intervals,
    Side,
)
from caltest.forms.signs import HasSigns, OfOneEvent, Signed
from caltest.forms.solved import LogisticRecalibration, WeightedRecalibration
from caltest.forms.sums import ClusterSums, LinearSum, MeanSquare, MeanSurprise, Sums
