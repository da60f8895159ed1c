"""The outside system, as the handlers see it: a warehouse that runs queries for minutes, and says
late, wrongly or not at all when one has ended.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from aiohttp import ClientError, ClientResponseError, ClientSession, ClientTimeout

_ENVELOPE = (
    '<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/">'
    "<soap:Body>{}</soap:Body></soap:Envelope>"
)


class Unreachable(Exception):
    """It gave no usable answer, which says nothing about the query."""


@dataclass(frozen=True)
class Status:
    """What the warehouse says of a task."""

    word: str
    error: str
    hint: bool
    """It names a time at which the query is said to have ended."""


class Warehouse:
    """One warehouse and its login."""

    def __init__(self, url: str, patience: float = 10) -> None:
        self.url = url
        self._timeout = ClientTimeout(total=patience)
        self._token = ""
        self._token_until = 0.0

    async def start(self, run: str, sql: str) -> str:
        """Start a query whose rows go into a table of the run's name; the id of its task."""
        perform = f"<Perform><Key>{escape(run)}</Key><Query>{escape(sql)}</Query></Perform>"
        return (await self._soap(perform)).findtext(".//TaskID", "")

    async def status(self, task: str) -> Status:
        answer = await self._soap(f"<Retrieve><TaskID>{escape(task)}</TaskID></Retrieve>")
        return Status(
            answer.findtext(".//Status", "").lower(),
            answer.findtext(".//ErrorMsg", ""),
            answer.find(".//CompletedDate") is not None,
        )

    async def is_running(self, run: str) -> bool:
        return bool((await self._ask("GET", f"/queries/{run}"))["isRunning"])

    async def count(self, run: str) -> int | None:
        """How many rows there are; None while its table cannot be asked."""
        answer: dict[str, int] = await self._ask("GET", f"/tables/{run}/count", absent={})
        return answer.get("count")

    async def delete(self, run: str) -> None:
        """Stop the run's queries and remove them; its rows stay. No error if there are none."""
        await self._ask("DELETE", f"/queries/{run}", absent={})

    async def _soap(self, body: str) -> ET.Element:
        text = await self._ask("POST", "/soap", data=_ENVELOPE.format(body))
        return ET.fromstring(text)  # noqa: S314  # the warehouse is trusted

    async def _ask(self, method: str, path: str, *, absent: Any = None, data: str = "") -> Any:
        """JSON or text; `absent` is what a 404 means. A refused token is asked for anew, once."""
        try:
            async with ClientSession(self.url, timeout=self._timeout) as session:
                for is_last in (False, True):
                    bearer = {"Authorization": f"Bearer {await self._login(session)}"}
                    async with session.request(method, path, data=data, headers=bearer) as answer:
                        if answer.status == 401 and not is_last:
                            self._token = ""
                            continue
                        if answer.status == 404 and absent is not None:
                            return absent
                        answer.raise_for_status()
                        is_json = answer.content_type == "application/json"
                        return await answer.json() if is_json else await answer.text()
        except ClientResponseError as error:
            raise Unreachable(f"{error.status} {error.message}") from error
        except (ClientError, TimeoutError) as error:
            raise Unreachable(str(error) or type(error).__name__) from error

    async def _login(self, session: ClientSession) -> str:
        if not self._token or time.monotonic() > self._token_until:
            login = {"client_id": "example", "client_secret": "secret"}
            async with session.post("/token", json=login) as answer:
                answer.raise_for_status()
                said = await answer.json()
            self._token = said["access_token"]
            self._token_until = time.monotonic() + 0.8 * said["expires_in"]
        return self._token


warehouse = Warehouse(os.environ.get("WAREHOUSE_URL", "http://127.0.0.1:8701"))
