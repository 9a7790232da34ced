"""The audit: many looks at a model, and one exact answer."""

from caltest.auditing.engine import assert_calibrated, audit
from caltest.auditing.result import Audit, Check, Group, Reliability, Skipped, View

__all__ = ["Audit", "Check", "Group", "Reliability", "Skipped", "View", "assert_calibrated", "audit"]
