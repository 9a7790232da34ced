"""Forms: statistics with the predictions fixed, as functions of the outcomes."""

from caltest.forms.base import Combined, Component, Form, HasMoments, LabelFunction, Moments, TailBound
from caltest.forms.cells import Binned, BinnedDistance, BinnedSquares, GriddedDifference, PearsonGroups
from caltest.forms.low_rank import FeatureSquares
from caltest.forms.pairs import PairMean, Pairwise
from caltest.forms.paths import CumulativeDifference, Intervals, LargestError, Side
from caltest.forms.predictive import MeanOfNumbers, MeanSquare, MeanSurprise
from caltest.forms.recalibration import LogisticRecalibration, WeightedRecalibration
from caltest.forms.signs import FEWEST_CLUSTERS, Atoms, HasSigns, Signed, effective_clusters
from caltest.forms.sums import ClusterSums, EventSum, LinearSum, Sums
