"""Loads the settings: arguments win over the environment, which wins over defaults."""

from __future__ import annotations

import os
import re
import socket
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Self

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from hybrid_runner import secrets
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.settings.monitoring import Monitoring
from hybrid_runner.settings.sections import (
    SECTIONS,
    Database,
    Logs,
    Pages,
    Polling,
    Retention,
    Work,
)
from hybrid_runner.settings.tuning import Tuning
from hybrid_runner.settings.values import Section

PREFIX = "HYBRID_RUNNER_"
_FIELDS = {name: attribute for attribute, section in SECTIONS for name in section.model_fields}
_OTHER_VARIABLES = {
    "HYBRID_RUNNER_POSTGRES_BIN",  # the embedded Postgres
    "HYBRID_RUNNER_SUPERVISED",  # what a process of `worker --processes` is told by its parent
}
_OF_TESTS = re.compile(r"HYBRID_RUNNER_TEST_\w+")
_OF_A_SERVICE = re.compile(
    r"HYBRID_RUNNER_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_\w+)?)"
)
"""Kubernetes sets these in every pod for a Service whose name begins with `hybrid-runner`."""


@dataclass(frozen=True)
class Settings:
    """All settings of a runner, in sections, and the numbers of tuning."""

    database: Database = field(default_factory=Database)
    work: Work = field(default_factory=Work)
    polling: Polling = field(default_factory=Polling)
    retention: Retention = field(default_factory=Retention)
    pages: Pages = field(default_factory=Pages)
    logs: Logs = field(default_factory=Logs)
    monitoring: Monitoring = field(default_factory=Monitoring)
    tuning: Tuning = field(default_factory=Tuning)

    @classmethod
    def load(
        cls,
        environment: Mapping[str, str] | None = None,
        *,
        tuning: Tuning | None = None,
        **arguments: object,
    ) -> Self:
        """Load the settings; a ConfigurationError names what is wrong in one line."""
        values: dict[str, object] = dict(_read(os.environ if environment is None else environment))
        values.update((name, value) for name, value in arguments.items() if value is not None)
        return cls._made(values, tuning or Tuning())

    def replaced(self, *, tuning: Tuning | None = None, **arguments: object) -> Self:
        """A copy with other values; another `dsn` also forgets the `listen_dsn` of the old one."""
        given = {name: value for name, value in arguments.items() if value is not None}
        values: dict[str, object] = {}
        for attribute, _ in SECTIONS:
            section = getattr(self, attribute)
            values.update({name: getattr(section, name) for name in section.model_fields_set})
        if "dsn" in given:
            values.pop("listen_dsn", None)
        return self._made(values | given, tuning or self.tuning)

    @classmethod
    def _made(cls, values: Mapping[str, object], tuning: Tuning) -> Self:
        for name in values:
            if name not in _FIELDS:
                raise ConfigurationError(
                    f"there is no setting {name!r}{_guess(name)}: see docs/settings.md"
                )
        sections = {attribute: _section(section, values) for attribute, section in SECTIONS}
        made = cls(**sections, tuning=tuning)
        secrets.learn_dsn(made.database.dsn, made.database.listen_dsn)
        if made.pages.http_token is not None:
            secrets.learn(made.pages.http_token.get_secret_value())
        return made

    @staticmethod
    def fields() -> dict[str, FieldInfo]:
        """Every setting by its name, in the order of docs/settings.md."""
        return {n: f for _, section in SECTIONS for n, f in section.model_fields.items()}

    def is_given(self, name: str) -> bool:
        """Whether a setting was given by an argument or by the environment."""
        return name in getattr(self, _FIELDS[name]).model_fields_set

    def make_worker_id(self) -> str:
        """The `worker_id` setting, or a new id that no other worker has."""
        made_up = f"{socket.gethostname()[:100]}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        return self.work.worker_id or made_up


def unknown_variables(environment: Mapping[str, str] | None = None) -> list[str]:
    """One warning for each variable that begins like a setting and is none."""
    given = os.environ if environment is None else environment
    settings = [PREFIX + name.upper() for name in _FIELDS]
    return [
        f"the environment variable {name} is no setting{_guess(name)}: it is ignored"
        for name in sorted(given.keys() - settings - _OTHER_VARIABLES)
        if name.startswith(PREFIX) and not _is_of_others(name, given[name])
    ]


def _is_of_others(name: str, value: str) -> bool:
    if name.endswith("PORT") and "://" in value:  # of a Service too: tcp://10.0.0.7:80
        return True
    return bool(_OF_TESTS.fullmatch(name) or _OF_A_SERVICE.fullmatch(name))


def _read(environment: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    if environment.get("WORKER_ID"):
        yield "worker_id", environment["WORKER_ID"]
    for name in _FIELDS:
        if text := environment.get(PREFIX + name.upper()):
            yield name, text


def _section(section: type[Section], values: Mapping[str, object]) -> Any:
    given = {name: values[name] for name in section.model_fields if name in values}
    try:
        return section.model_validate(given)
    except ValidationError as error:
        raise ConfigurationError(_one_line(error)) from None


def _one_line(error: ValidationError) -> str:
    first = error.errors()[0]
    message = first["msg"].removeprefix("Value error, ")
    if not first["loc"]:
        return f"settings: {message}"
    name = str(first["loc"][0])
    return f"setting {name} ({PREFIX}{name.upper()}): {message}"


def _guess(name: str) -> str:
    """For an argument or a variable, whose prefix must not count: all variables have it."""
    prefix = PREFIX if name.startswith(PREFIX) else ""
    near = get_close_matches(name.removeprefix(prefix).lower(), _FIELDS, n=1)
    if not near:
        return ""
    return f" (did you mean {(prefix + near[0].upper() if prefix else near[0])!r}?)"
