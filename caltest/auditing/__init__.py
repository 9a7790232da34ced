"""The audit: many checks of one model, with one exact p-value for all of them."""

# ruff: noqa: F403, F405 -- every class of the views is public

from caltest.auditing.audits import assert_calibrated, audit
from caltest.auditing.limits import Limit
from caltest.auditing.posteriors import sbc
from caltest.auditing.result import Audit
from caltest.auditing.views import *

__all__ = ["Audit", "Bin", "ByFeature", "Check", "Condition", "Count", "Cumulative", "Curves", "Group"]
__all__ += ["Histogram", "Limit", "Part", "PitHistogram", "Reliability", "Rest", "Sensitivity"]
__all__ += ["Skipped", "Slice", "View", "assert_calibrated", "audit", "sbc"]
