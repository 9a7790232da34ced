"""Nulls: the ways to compute a p-value, each with its assumption."""

from caltest.nulls.analytic import Bound, Brownian, Chi2, Normal
from caltest.nulls.base import GUARANTEES, Answer, Guarantee, Null, Part, Question, observed_value
from caltest.nulls.bootstrap import Bootstrap, Consistency, Spectral, WildBootstrap
from caltest.nulls.cluster_signs import ClusterSigns
from caltest.nulls.comonotone import ComonotoneLabels
from caltest.nulls.moments import ConditionalMoments
from caltest.nulls.monte_carlo import MonteCarlo, answer_of
from caltest.nulls.one_per_cluster import OnePerCluster

NULLS: dict[str, type[Null]] = {
    null.name: null
    for null in (
        MonteCarlo,
        ConditionalMoments,
        Normal,
        Chi2,
        Brownian,
        Bootstrap,
        WildBootstrap,
        Spectral,
        Bound,
        Consistency,
        ClusterSigns,
        ComonotoneLabels,
        OnePerCluster,
    )
}

__all__ = [
    "GUARANTEES",
    "NULLS",
    "Answer",
    "Bootstrap",
    "Bound",
    "Brownian",
    "Chi2",
    "ClusterSigns",
    "ComonotoneLabels",
    "ConditionalMoments",
    "Consistency",
    "Guarantee",
    "MonteCarlo",
    "Normal",
    "Null",
    "OnePerCluster",
    "Part",
    "Question",
    "Spectral",
    "WildBootstrap",
    "answer_of",
    "observed_value",
]
