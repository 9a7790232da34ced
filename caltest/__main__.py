"""``python -m caltest`` is the command line, and so is the script ``caltest``."""

import os
import signal


def main() -> None:
    """Load the command line and run it; Ctrl-C before and after the work is as quiet as within."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # `nohup` has it ignored
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    from caltest.cli import main as run

    run()


if __name__ == "__main__":
    main()
