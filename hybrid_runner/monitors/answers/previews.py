"""What a service would be understood to say, before it is stored."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hybrid_runner.model.monitors import Format, Service
from hybrid_runner.monitors.answers.dependencies import Parsed, parse_dependencies
from hybrid_runner.monitors.answers.expect import Expect
from hybrid_runner.monitors.answers.items import read_json
from hybrid_runner.monitors.answers.mapping import Mapping, compile_mapping


def parse_answer(body: bytes, mapping: Mapping | dict[str, Any] | None = None) -> Parsed:
    """The items and warnings of an answer. PollFailed when it cannot be read, ConfigurationError
    when the mapping is none.
    """
    stored = mapping.stored() if isinstance(mapping, Mapping) else mapping
    if stored is None:
        return parse_dependencies(read_json(body))
    return compile_mapping(stored).read(read_json(body))


def preview_service(
    url: str,
    mapping: Mapping | dict[str, Any] | None = None,
    *,
    expect: Expect | dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
    format: Format | None = None,  # noqa: A002  the column is called so
    timeout: timedelta = timedelta(seconds=10),
    follow: int = 0,
) -> Service:
    """A service that is stored nowhere, to be given to `poll_group`."""
    stored = mapping.stored() if isinstance(mapping, Mapping) else mapping
    return Service(
        id=0,
        name="preview",
        url=url,
        every=timedelta(seconds=30),
        timeout=timeout,
        format=format or ("mapping" if stored is not None else "dependencies"),
        mapping=stored,
        expect=expect.stored() if isinstance(expect, Expect) else expect,
        headers=headers,
        follow=follow,
        fail_after=1,
        recover_after=1,
        is_asked=True,
        suppressed=None,
        standing=None,
    )
