"""Studies that show what the package's numbers are worth. One command each, seeds fixed."""
