"""``python -m caltest`` is the command line, and so is the script ``caltest``."""

import gc
import os
import signal


def main() -> None:
    """Load the command line and run it; Ctrl-C while it is loaded is as quiet as within."""
    heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # `nohup` has it ignored
    if heeded:
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    gc.disable()  # until all is imported, which stays
    from caltest.cli import main as run

    if heeded:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


if __name__ == "__main__":
    main()
