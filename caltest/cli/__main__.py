"""``python -m caltest.cli`` is the command line."""

from caltest.cli import main

main()
