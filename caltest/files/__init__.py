"""Read predictions, labels and groups from files: CSV, Parquet, Arrow, JSON lines, NPZ or NPY."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from caltest.files.batches import Stored, scan_arrays
    from caltest.files.reading import read, read_with_groups, scan

__all__ = ["Stored", "read", "read_with_groups", "scan", "scan_arrays"]


def __getattr__(name: str) -> Any:
    """Import on first use: paths and writers are needed before any file is read."""
    if name not in __all__:
        raise AttributeError(f"module 'caltest.files' has no attribute {name!r}")
    from caltest.files import batches, reading

    found = globals()[name] = getattr(batches if name == "scan_arrays" else reading, name)
    return found
