from __future__ import annotations

from hybrid_runner.settings import PREFIX, Settings
from tests.docs.settings_page import PAGE, page


def test_the_settings_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "write it anew: python -m tests.docs.settings_page"
    )


def test_the_settings_page_has_every_field_with_its_name_in_the_environment_and_its_description() -> (
    None
):
    text = page()
    for name, field in Settings.fields().items():
        assert f"| `{name}` | `{PREFIX}{name.upper()}` |" in text
        assert field.description
        assert field.description in text
