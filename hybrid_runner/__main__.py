"""`hybrid-runner` and `python -m hybrid_runner`: Ctrl-C ends the process with 130, without a
traceback.
"""

import _signal  # type: ignore[import-not-found]  # what `signal` is made of, without the moment that its import takes
import os
import sys

_INTERRUPTED = 130


def main() -> int:
    """Run one command; its exit code."""
    # In the background of a shell, Ctrl-C is for others.
    if _signal.getsignal(_signal.SIGINT) is _signal.SIG_IGN:
        from hybrid_runner.cli import main as run_command  # noqa: PLC0415  # as below

        return run_command()
    _signal.signal(_signal.SIGINT, _end_at_once)
    from hybrid_runner.cli import main as run_command  # noqa: PLC0415  # not before Ctrl-C is taken care of

    try:
        return run_command(ready=_interrupt_as_usual)
    except KeyboardInterrupt:
        return _INTERRUPTED
    finally:
        # Unless the command has a handler of its own.
        if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
            _signal.signal(_signal.SIGINT, _end_at_once)  # the interpreter takes a moment to end


def _end_at_once(_number: int, _frame: object) -> None:
    """Not by an exception: while modules are imported, it might be caught there, or printed."""
    os._exit(_INTERRUPTED)


def _interrupt_as_usual() -> None:
    """From here on Ctrl-C raises KeyboardInterrupt, which commands handle."""
    _signal.signal(_signal.SIGINT, _signal.default_int_handler)


if __name__ == "__main__":
    sys.exit(main())
