"""`hybrid-runner` and `python -m hybrid_runner`. From here on Ctrl-C ends the process with 130 and
without a traceback.
"""

import _signal  # type: ignore[import-not-found]  # what `signal` is made of, without the moment that its import takes
import os
import sys

_INTERRUPTED = 130


def main() -> int:
    """Run one command; its exit code."""
    if (
        _signal.getsignal(_signal.SIGINT) is _signal.SIG_IGN
    ):  # a shell's job in the background: Ctrl-C is not for it
        from hybrid_runner.cli import main as run_command  # noqa: PLC0415  # as below

        return run_command()
    _signal.signal(_signal.SIGINT, _end_at_once)
    from hybrid_runner.cli import main as run_command  # noqa: PLC0415  # not before Ctrl-C is taken care of

    try:
        return run_command(ready=_interrupt_as_usual)
    except KeyboardInterrupt:
        return _INTERRUPTED
    finally:
        if (
            _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler
        ):  # the command has not taken it for itself
            _signal.signal(_signal.SIGINT, _end_at_once)  # the interpreter takes a moment to end


def _end_at_once(_number: int, _frame: object) -> None:
    """While modules are imported, an exception might be caught by whoever tries an import, or be
    printed.
    """
    os._exit(_INTERRUPTED)


def _interrupt_as_usual() -> None:
    """Commands know what to do when Ctrl-C raises KeyboardInterrupt."""
    _signal.signal(_signal.SIGINT, _signal.default_int_handler)


if __name__ == "__main__":
    sys.exit(main())
