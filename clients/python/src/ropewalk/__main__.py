"""`python -m ropewalk`: the command line."""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """Runs the command line. Errors are one line on stderr and exit code 1; usage is 2, an interrupt 130."""
    # Termination unwinds like an interrupt, so that private daemons end and half-written files go.
    signal.signal(signal.SIGTERM, _terminate)
    try:
        from .cli import app
        from .errors import RopewalkError
    except KeyboardInterrupt:
        sys.exit(130)
    try:
        app(prog_name="ropewalk")
    except RopewalkError as error:
        fail(str(error))
    except TimeoutError as error:
        fail(f"DEADLINE_EXCEEDED: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # Whoever read our output has gone.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def fail(text: str) -> None:
    """One line on stderr, exit code 1."""
    print("ropewalk: " + " ".join(text.split()), file=sys.stderr)
    sys.exit(1)


def _terminate(number: int, frame: object) -> None:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    main()
