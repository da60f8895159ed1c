"""How the values of settings are read, and the base of every section."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr

from hybrid_runner.durations import parse_duration
from hybrid_runner.errors import ConfigurationError


class Section(BaseModel):
    """A frozen group of settings that belong together."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _read_duration(value: object) -> timedelta:
    try:
        return parse_duration(value)  # type: ignore[arg-type]  # whatever a person wrote
    except (ConfigurationError, AttributeError) as error:
        raise ValueError(str(error)) from None


def lower_case(value: object) -> object:
    """Words may be written in any case."""
    return value.lower() if isinstance(value, str) else value


def check_token(token: SecretStr | None) -> SecretStr | None:
    """A token is sent in an HTTP header, so it may hold only what a header may hold."""
    if token is not None:
        text = token.get_secret_value()
        if not re.fullmatch(r"[A-Za-z0-9._~+/=-]{16,512}", text):
            raise ValueError("must be 16 to 512 letters, digits and . _ ~ + / = -")
    return token


def check_hosts(names: str | None) -> str | None:
    """Names of hosts without ports, as a browser would send them."""
    for name in () if names is None else names.split(","):
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,253}", name.strip()):
            raise ValueError(
                f"{name.strip()[:60]!r} is no name of a host: write names without ports, such as"
                " jobs.example.org"
            )
    return names


def check_origins(origins: str | None) -> str | None:
    """Scheme, name and port of sites, as a browser sends them."""
    for origin in () if origins is None else origins.split(","):
        if not re.fullmatch(
            r"(?i)https?://([a-z0-9._-]{1,253}|\[[0-9a-f:.]+\])(:[0-9]{1,5})?", origin.strip()
        ):
            raise ValueError(
                f"{origin.strip()[:60]!r} is no origin: write https://runs.example.org, without a"
                " path, one for each site; `*` is none"
            )
    return origins


def check_status(shown: str | None) -> str | None:
    """`all`, or a label and its value."""
    if shown is None:
        return None
    name, equals, value = shown.strip().partition("=")
    if shown.strip() != "all" and not (name.strip() and equals and value.strip()):
        raise ValueError(f"{shown[:60]!r} is neither `all` nor a label such as public=true")
    return shown.strip()


def check_url(url: str | None) -> str | None:
    """Scheme, name, port and path of a site, without a slash at the end."""
    if url is None:
        return None
    if not re.fullmatch(
        r"(?i)https?://([a-z0-9._-]{1,253}|\[[0-9a-f:.]+\])(:[0-9]{1,5})?(/[\w./~-]*)?", url
    ):
        raise ValueError(
            f"{url[:60]!r} is no address of a site: write https://jobs.example.org, without a query"
        )
    return url.rstrip("/")


def check_order(section: Section, shorter: str, longer: str) -> None:
    """ValueError if the first of two durations is longer than the second."""
    if getattr(section, shorter) > getattr(section, longer):
        raise ValueError(f"{shorter} must not be longer than {longer}")


Duration = Annotated[timedelta, BeforeValidator(_read_duration), Field(gt=timedelta(0))]
