from __future__ import annotations

from hybrid_runner.cli import COMMANDS, make_parser
from tests.docs.cli_page import PAGE, commands, page


def test_the_command_line_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "write it anew: python -m tests.docs.cli_page"
    )


def test_the_command_line_page_has_every_command_and_says_what_each_argument_is() -> None:
    text = page()
    assert {parser.prog.split()[1] for parser in commands(make_parser())} == set(COMMANDS)
    assert all(f"\n## {parser.prog}\n" in text for parser in commands(make_parser()))
    assert "None" not in text
