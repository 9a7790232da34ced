"""What the words of reports mean, in a sentence or two each; docs/glossary.md has the same and more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from caltest.text.numbers import points

if TYPE_CHECKING:
    from caltest.auditing.result import Audit

CALIBRATED, FULL, TOP, CLASSWISE = "Calibrated", "Full probability vector", "Top class", "Classwise"
OVERCONFIDENT, ERROR = "Overconfident, underconfident", "Error, percentage point"
INTERVAL, AT_LEAST = "Confidence interval, simultaneous", "Some predictions, at least"
P_VALUE, ADJUSTED, LEVEL = "p-value", "Adjusted p-value, family-wise", "Level, false alarm"
NOT_FOUND, LIMIT = "Not found", "Limit, materiality"
CLUSTER, WEIGHT = "Cluster", "Weight, effective number of rows"

GLOSSARY = {
    CALIBRATED: (
        "Among all cases with the same prediction, each outcome occurs as often as predicted: of "
        "all cases with a predicted risk of 30%, 30% have the event."
    ),
    FULL: (
        "All classes at once (canonical calibration): each class occurs as often as predicted "
        "among all cases with the same probabilities for all classes."
    ),
    TOP: (
        "The class with the highest predicted probability. Its probability is the model's "
        "confidence, and the model should be right as often as its confidence predicts."
    ),
    CLASSWISE: ("About the predicted probability of each class by itself."),
    OVERCONFIDENT: (
        "Overconfident: probabilities are too extreme, too close to 0 and 1. Underconfident: not "
        "extreme enough."
    ),
    ERROR: (
        "Predicted minus observed. Predicted 28%, observed 35%: an error of −7 percentage points,"
        " “7 points too low”."
    ),
    INTERVAL: (
        "A range that contains the true error in at least 95% of data sets, or whatever level is "
        "named. Simultaneous: in at least that share of data sets all intervals of a report hold, so "
        "it does not matter which of them you look at. One that excludes zero shows in which direction "
        "the predictions are wrong, if a check found an error there."
    ),
    AT_LEAST: (
        "A lower bound on the largest error of any single prediction in these rows. Some "
        "predictions are wrong by this much or more; the average error may be smaller."
    ),
    P_VALUE: (
        "The probability of evidence at least this strong if the model were calibrated and the "
        "assumptions hold. Small: the model is wrong. Large: no error was shown, which does not "
        "prove that there is none. It is not the size of an error."
    ),
    ADJUSTED: (
        "A p-value that allows for the number of checks, since with many checks some are small by"
        " chance. The probability of even one false alarm among all checks together stays at or "
        "below the level."
    ),
    LEVEL: (
        "The probability of a false alarm that you accept, usually 5%: of 100 calibrated models, "
        "at most 5 are expected to be called miscalibrated."
    ),
    NOT_FOUND: (
        "The data show no error. There may be one that is too small for this many rows, or of a "
        "kind that was not checked."
    ),
    LIMIT: (
        "The largest average error that does not matter to you. The verdict is “material” if an "
        "error is shown to be larger, and “small” or “within” if all intervals lie inside the "
        "limit."
    ),
    CLUSTER: ("Rows that may depend on each other: the visits of one patient, the days of one week."),
    WEIGHT: (
        "How many cases a row stands for. Uneven weights carry less information; the effective "
        "number of rows says how many equally weighted rows would carry as much."
    ),
}


def words_of(audit: Audit) -> list[tuple[str, str]]:
    """Return the words that the report of an audit needs, and what they mean there."""
    idle = set()
    if audit.n_classes == 2:
        idle |= {FULL, TOP, CLASSWISE}
    if audit.clusters is None:
        idle.add(CLUSTER)
    if audit.effective_n is None:
        idle.add(WEIGHT)
    meanings = {word: meaning for word, meaning in GLOSSARY.items() if word not in idle}
    if audit.tolerance:
        meanings[P_VALUE] = (
            "The probability, at most, of evidence at least this strong if no prediction were wrong by "
            f"more than {points(audit.tolerance)}. Small: some predictions are wrong by more."
        )
    return list(meanings.items())
