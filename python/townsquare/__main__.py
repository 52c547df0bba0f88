"""The command `townsquare`: `python -m townsquare`, and the script of the package."""

import signal
import sys

from ._native import run_command  # type: ignore[import-not-found]


def main() -> int:
    """Runs the command with the arguments of the process, and returns its exit code."""
    # The command ends itself at Ctrl-C. Where the signal is ignored, it stays so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    return run_command(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
