"""Finds the Runner that MODULE:APP names; if it cannot, the error says why in one line."""

from __future__ import annotations

import importlib
import logging
import sys
import traceback
from functools import reduce
from pathlib import Path
from types import ModuleType

from hybrid_runner.cli.parsing import did_you_mean
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.runner import Runner
from hybrid_runner.telemetry.log_events import log_event

log = logging.getLogger("hybrid_runner.cli")


def split_target(text: str) -> tuple[str, str]:
    """Module and attribute; ValueError says what the text lacks."""
    module, colon, attribute = text.partition(":")
    if not colon:
        raise ValueError(
            f"{text!r} has no colon: write MODULE:APP, like"
            f" {module.removesuffix('.py') or 'tasks'}:app"
        )
    if module.endswith(".py") or "/" in module:
        dotted = module.removesuffix(".py").strip("./").replace("/", ".")
        raise ValueError(f"{module!r} is a file: write its module, {dotted}:{attribute}")
    if not all(part.isidentifier() for part in (*module.split("."), *attribute.split("."))):
        raise ValueError(f"{text!r} is not MODULE:APP, like tasks:app")
    return module, attribute


def load_app(module_name: str, attribute: str) -> Runner:
    """Import the module, with the current folder first, and take the Runner from it."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    module = _import(module_name)
    try:
        app = reduce(getattr, attribute.split("."), module)
    except AttributeError:
        known = [name for name in vars(module) if not name.startswith("_")]
        guess = "" if _runners(module) else did_you_mean(attribute, known)
        raise ConfigurationError(
            f"module {module_name!r} has no {attribute!r}{guess}{_found(module)}"
        ) from None
    if not isinstance(app, Runner):
        raise ConfigurationError(
            f"{module_name}:{attribute} is of type {type(app).__name__}, not a"
            f" Runner{_found(module)}"
        )
    return app


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a module may raise anything, SystemExit too
        if (
            isinstance(error, ModuleNotFoundError)
            and error.name
            and f"{name}.".startswith(f"{error.name}.")
        ):
            there = sorted(path.stem for path in Path.cwd().glob("*.py"))
            raise ConfigurationError(
                f"there is no module {error.name!r} in {Path.cwd()} or on the Python"
                f" path{did_you_mean(name, there)}"
            ) from None
        log.debug("importing %s failed", name, exc_info=True, extra=log_event("command.failed"))
        raise ConfigurationError(
            f"importing {name!r} raised {type(error).__name__}: {error}{_place(error)}"
        ) from None


def _place(error: BaseException) -> str:
    """File and line where the import failed: the deepest frame in the user's own folder, else the
    deepest of all.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return ""  # str(error) says it already
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<frozen ")
    ]
    frames = [frame for frame in frames if frame.filename not in (__file__, importlib.__file__)]
    ours = [
        frame
        for frame in frames
        if Path(frame.filename).is_relative_to(Path.cwd()) and "site-packages" not in frame.filename
    ]
    if not frames:
        return ""
    deepest = (ours or frames)[-1]
    return f" ({deepest.filename}:{deepest.lineno})"


def _runners(module: ModuleType) -> list[str]:
    return [name for name, value in vars(module).items() if isinstance(value, Runner)]


def _found(module: ModuleType) -> str:
    names = [f"{module.__name__}:{name}" for name in _runners(module)]
    return (
        f"; there is {' and '.join(names)}"
        if names
        else "; there is no Runner in it: app = Runner()"
    )
