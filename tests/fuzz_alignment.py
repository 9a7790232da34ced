"""A strategy of calls whose arguments have indexes, coordinates and names that agree or do not.

The rule: the number that plain arrays give, or an `InputError`; never another number.
"""

from dataclasses import dataclass

import alignments as calls
import numpy as np
import pandas as pd
from alignments import CALLS, DATA, N
from fuzzing import Broken, Unusable, in_package
from hypothesis import strategies as st

import caltest

#: How the name of a column may be written.
FORMS = {
    "bare": str, "prefix": "prob_{}".format, "suffix": "{}_prob".format, "call": "P({})".format,
    "brackets": "p[{}]".format, "two levels": lambda name: ("p", str(name)),
}  # fmt: skip


@dataclass(frozen=True)
class Part:
    """How an argument is given: rows and columns may be in another order, with their names."""

    name: str
    container: str
    rows: str = "straight"
    columns: str = "straight"
    form: str = "bare"
    cells: str = "int"

    def made(self, index, seed):
        """Return the argument."""
        values, rng = calls.written(self.name, self.cells), np.random.default_rng(seed)
        if self.rows == "shuffled":
            order = rng.permutation(N)
            values, index = values[order], index[order]
        if values.ndim == 1:
            return calls.CONTAINERS[self.container](self.name, values, index)
        names = calls.COLUMNS[self.name]
        if self.columns == "shuffled":
            order = rng.permutation(len(names))
            values, names = values[:, order], [names[k] for k in order]
        found = calls.CONTAINERS[self.container](self.name, values, index)
        if isinstance(found, pd.DataFrame):
            named = [FORMS[self.form](x) if self.name in ("probs", "other") else x for x in names]
            found.columns = pd.MultiIndex.from_tuples(named) if self.form == "two levels" else named
        elif self.container == "xarray":
            found = found.assign_coords({found.dims[1]: names})
        elif self.container == "polars":
            found.columns = [str(name) for name in names]
        elif self.container in ("pyarrow", "chunks"):
            found = found.rename_columns([str(name) for name in names])
        return found.transpose() if self.rows == "turned" else found


@dataclass(frozen=True)
class Aligned:
    """A call of the table of `alignments`."""

    call: str
    index: str
    parts: tuple[Part, ...]
    seed: int

    def run(self):
        """See `fuzzing.Case`."""
        plain = calls.expected(self.call)
        try:
            made = {
                part.name: part.made(calls.INDEXES[self.index], self.seed + k)
                for k, part in enumerate(self.parts)
            }
            found = calls.numbers(self.call, made)
        except caltest.InputError:
            return False
        except Exception as error:
            if in_package(error.__traceback__):
                raise Broken(type(error).__name__, self.call, str(error)[:300]) from error
            raise Unusable from error
        if found != plain:
            raise Broken("another number", self.call)
        return True


@st.composite
def aligned_calls(draw):
    """Draw a call in which one argument has an index and is in order, and others may not be."""
    call = draw(st.sampled_from(sorted(CALLS)))
    names = draw(st.permutations(list(calls.parts_of(call))))
    orders, parts = ["straight"] * 3 + ["shuffled"], []
    for place, name in enumerate(names):
        held = calls.INDEXED if place < 2 else sorted({*calls.CONTAINERS} - {"torch"})
        if call == "normal vectors":  # entries of arrays are known by their places alone
            held = (*calls.INDEXED, *calls.TYPED)[: 5 if place < 2 else 8]
        container = draw(st.sampled_from(held))
        table, indexed = DATA[name].ndim == 2, container in calls.INDEXED
        rows = (
            "shuffled"
            if place == 1
            else draw(st.sampled_from(orders))
            if place and indexed
            else "straight"
        )
        if container == "xarray" and table and draw(st.sampled_from([0, 0, 1])):
            rows = "turned"
        if place == 1 and draw(st.booleans()):
            rows = "straight"
        by_name = table and call in calls.ANY_ORDER and container in (*calls.INDEXED, *calls.TYPED)
        columns = draw(st.sampled_from(orders)) if by_name else "straight"
        kinds = [k for k in calls.WRITTEN if k != "mixed" or container not in calls.TYPED]
        cells = draw(st.sampled_from(kinds)) if name in calls.DISCRETE else "int"
        form = draw(st.sampled_from(sorted(FORMS))) if columns == "shuffled" else "bare"
        parts.append(Part(name, container, rows, columns, form, cells))
    return Aligned(
        call, draw(st.sampled_from(sorted(calls.INDEXES))), tuple(parts), draw(st.integers(0, 99))
    )
