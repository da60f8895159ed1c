"""Monitors without code of one's own: `hybrid-runner worker hybrid_runner.monitors.standalone:app`.
All is as the settings say; who wants to be told of events in Python writes an app.
"""

from hybrid_runner import Runner
from hybrid_runner.monitors.monitors import Monitors

app = Runner()
monitors = Monitors(app)
