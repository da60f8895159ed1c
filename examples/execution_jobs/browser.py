"""Plays a recording: a browser that is none."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Template


class BrowserCrashed(RuntimeError): ...


@dataclass
class Browser:
    """Takes so many seconds for each step."""

    step: float = 0.4

    async def play(self, steps: Sequence[str], values: Mapping[str, str]) -> str | None:
        """What went wrong; None if all steps passed. `${name}` in a step is the row's value."""
        for step in steps:
            await asyncio.sleep(self.step)
            action = Template(step).safe_substitute(values)
            if "crash" in action:
                raise BrowserCrashed(f"the browser crashed at {action!r}")
            if "missing" in action:
                return f"nothing to {action}"
        return None


browser = Browser()
