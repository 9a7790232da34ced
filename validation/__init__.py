"""Studies that show what the package's numbers are worth: ``python -m validation --list``."""
