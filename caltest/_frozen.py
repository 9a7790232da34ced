"""Results that nobody changes: their arrays are read-only."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np


def freeze_arrays(result: Any) -> None:
    """Make the arrays among the fields of a dataclass read-only."""
    for each in fields(result):
        value = getattr(result, each.name)
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
