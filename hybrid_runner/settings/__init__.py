"""Settings in sections: from arguments first, then from the environment, then defaults."""

from hybrid_runner.settings.load import PREFIX, Settings, unknown_variables
from hybrid_runner.settings.monitoring import Monitoring
from hybrid_runner.settings.options import SettingOptions
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

__all__ = [
    "PREFIX",
    "SECTIONS",
    "Database",
    "Logs",
    "Monitoring",
    "Pages",
    "Polling",
    "Retention",
    "SettingOptions",
    "Settings",
    "Tuning",
    "Work",
    "unknown_variables",
]
