"""The audit: many checks of one model, with one exact p-value for all of them."""

from caltest.auditing.audits import assert_calibrated, audit
from caltest.auditing.limits import Limit
from caltest.auditing.posteriors import sbc
from caltest.auditing.result import Audit
from caltest.auditing.views import (
    Bin,
    ByFeature,
    Check,
    Condition,
    Count,
    Cumulative,
    Curves,
    Group,
    Histogram,
    Part,
    PitHistogram,
    Reliability,
    Rest,
    Sensitivity,
    Skipped,
    Slice,
    View,
)

__all__ = [
    "Audit",
    "Bin",
    "ByFeature",
    "Check",
    "Condition",
    "Count",
    "Cumulative",
    "Curves",
    "Group",
    "Histogram",
    "Limit",
    "Part",
    "PitHistogram",
    "Reliability",
    "Rest",
    "Sensitivity",
    "Skipped",
    "Slice",
    "View",
    "assert_calibrated",
    "audit",
    "sbc",
]
