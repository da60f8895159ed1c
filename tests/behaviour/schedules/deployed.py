"""An app in two versions, of which the second adds, changes and removes schedules."""

from __future__ import annotations

import os
from typing import Any

from hybrid_runner import Runner

app = Runner()
NEW = os.environ.get("APP_VERSION") == "2"


@app.job("tick")
async def tick(payload: Any) -> None:
    pass


app.schedule("stays", "tick", every="1s", overlap="allow", missed="all")
app.schedule("changes", "tick", {"version": 1 + NEW}, every="2s" if NEW else "1s", overlap="allow")
if NEW:
    app.schedule("comes", "tick", every="1s", overlap="allow")
else:
    app.schedule("goes", "tick", every="1s", overlap="allow")
