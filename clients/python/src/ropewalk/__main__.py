"""`python -m ropewalk`: the command line."""

from __future__ import annotations

import os
import re
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
        code = app(prog_name="ropewalk", standalone_mode=False)
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
    except Exception as error:
        # Typer's own, whose classes live in other modules from version to version.
        if not hasattr(error, "format_message"):
            raise
        fail_usage(error.format_message(), getattr(error, "exit_code", 2))
    else:
        sys.exit(code if isinstance(code, int) else 0)


def fail(text: str) -> None:
    """One line on stderr, exit code 1."""
    print("ropewalk: " + " ".join(text.split()), file=sys.stderr)
    sys.exit(1)


def fail_usage(text: str, code: int) -> None:
    """One line on stderr for a wrong option or argument; the whole help where no word was given."""
    if text.startswith("Usage:"):
        print(text, file=sys.stderr)
    else:
        text = re.sub(r"^Invalid value for '?([^':]+)'?: ", r"\1: ", " ".join(text.split()))
        print(f"ropewalk: INVALID_ARGUMENT: {text}", file=sys.stderr)
    sys.exit(code)


def _terminate(number: int, frame: object) -> None:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    main()
