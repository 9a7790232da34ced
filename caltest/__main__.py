"""``python -m caltest`` is the command line."""

from caltest.cli import main

main()
