"""Whatever is wrong in the command itself: exit code 2 and one line."""

from __future__ import annotations

import pytest

from hybrid_runner.cli import COMMANDS, EXIT_CODES, main
from tests.cli.running import fails, succeeds, the_line

WRONG = [
    ([], "name a command: demo, migrate"),
    (["wroker"], "there is no command 'wroker' (did you mean 'worker'?)"),
    (["frobnicate"], "there is no command 'frobnicate' (there are: demo"),
    (["--dsn", "x", "jobs"], "there is no option --dsn; other options come after a command"),
    (["jobs"], "name a command: list, show, cancel, retry"),
    (["jobs", "lst"], "there is no command 'lst' (did you mean 'list'?)"),
    (["jobs", "list", "--state", "lost"], "there is no 'lost' (there are: queued"),
    (["jobs", "list", "--limit", "0"], "'0' is not a whole number 1 to 10000"),
    (["jobs", "list", "--queue", "a b"], "'a b' is not a queue"),
    (["jobs", "list", "--dsn", ""], "it is empty"),
    (["jobs", "list", "--jsn"], "there is no option --jsn (did you mean '--json'?)"),
    (["jobs", "show"], "required: ID"),
    (["jobs", "show", "x"], "'x' is not a whole number from 1 up"),
    (["jobs", "show", "+-1"], "'+-1' is not a whole number from 1 up"),
    (["jobs", "show", "9223372036854775808"], "'9223372036854775808' is larger than the id of any"),
    (["jobs", "show", "9" * 5000], "9' is larger than the id of any job"),
    (["jobs", "show", "-v", "1"], "there is no option -v"),
    (["-v"], "there is no option -v"),
    (["sql", "-5"], "'-5' is one argument too many"),
    (["jobs", "show", "1\n2"], "is not a whole number"),
    (["jobs", "cancel", "-1"], "'-1' is not a whole number"),
    (["queues", "pause"], "required: QUEUE"),
    (["queues", "pause", "../x"], "'../x' is not a queue"),
    (["queues", "pause", "q" * 49], "is not a queue"),
    (["signal"], "required: KEY"),
    (["signal", ""], "the key of a signal must be a text of 1 to 512 bytes"),
    (["signal", "paid:7", "{"], "the payload is not JSON"),
    (["sql", "extra"], "'extra' is one argument too many"),
    (["migrate", "--log-level", "loud"], "there is no 'loud'"),
    (["enqueue"], "required: KIND"),
    (["enqueue", "a b"], "'a b' is not a kind"),
    (["enqueue", "k", '{"a": 1'], "not JSON: Expecting ',' delimiter at line 1 column 8"),
    (["enqueue", "k", ""], "not JSON: Expecting value at line 1 column 1"),
    (["enqueue", "k", "[NaN]"], "JSON has no NaN"),
    (["enqueue", "k", "[" * 100_000], "nested too deeply"),
    (["enqueue", "k", "--priority", "99"], "'99' is not a whole number 0 to 9"),
    (["enqueue", "k", "--priority", "high"], "'high' is not a whole number 0 to 9"),
    (["enqueue", "k", "--max-attempts", "0"], "'0' is not a whole number 1 to 1000"),
    (["enqueue", "k", "--timeout", "0"], "it must be more than zero"),
    (["enqueue", "k", "--timeout", "-5"], "'-5' is not a duration from zero to ten years"),
    (["enqueue", "k", "--timeout", "-5s"], "'-5s' is not a duration from zero to ten years"),
    (["enqueue", "k", "--delay", "-5"], "'-5' is not a duration"),
    (["enqueue", "k", "--delay", "-5s"], "'-5s' is not a duration"),
    (["enqueue", "k", "--delay", "-3y"], "'-3y' is not a duration"),
    (["enqueue", "k", "--wait-timeout", "soon"], "'soon' is not a duration"),
    (["enqueue", "k", "--delay", "3y"], "write it like 30, 30s, 5m or 1h30m; see"),
    (["enqueue", "k", "--delay", "9999d"], "'9999d' is not a duration from zero to ten years"),
    (["enqueue", "k", "--delay", "1", "--run-at", "2030-01-01"], "not allowed with"),
    (["enqueue", "k", "--run-at", "tomorrow"], "'tomorrow' is not a date and time"),
    (["enqueue", "k", "--on-conflict", "panic"], "there is no 'panic'"),
    (["worker"], "required: MODULE:APP"),
    (["worker", "tasks"], "'tasks' has no colon: write MODULE:APP, like tasks:app"),
    (["worker", "src/tasks.py:app"], "is a file: write its module, src.tasks:app"),
    (["worker", "tasks:"], "is not MODULE:APP"),
    (["worker", ":app"], "is not MODULE:APP"),
    (["worker", "--quue", "a", "tasks:app"], "there is no option --quue (did you mean '--queue'?)"),
    (
        ["worker", "tasks:app", "--queue", "images=0"],
        "slots of 'images': '0' is not a whole number",
    ),
    (
        ["worker", "tasks:app", "--queue", "images=-1"],
        "slots of 'images': '-1' is not a whole number",
    ),
    (
        ["worker", "tasks:app", "--queue", "images=many"],
        "slots of 'images': 'many' is not a whole number",
    ),
    (["worker", "tasks:app", "--queue", "images="], "slots of 'images': '' is not a whole number"),
    (["worker", "tasks:app", "--queue", "=3"], "'' is not a queue"),
    (["worker", "tasks:app", "--queue", "a", "--queue", "a=3"], "'a' is given twice"),
    (["demo", "--json", "now"], "'now' is one argument too many"),
]


@pytest.mark.parametrize(
    ("arguments", "expected"), WRONG, ids=[" ".join(words)[:40] or "nothing" for words, _ in WRONG]
)
def test_wrong_use_is_one_line(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    returned = main(arguments)
    captured = capsys.readouterr()
    line = the_line(returned, captured.err, 2)
    assert expected in line
    assert line.endswith(" --help")
    assert captured.out == ""


def test_wrong_use_of_a_real_process() -> None:
    assert "did you mean 'worker'" in fails("wroker", code=2)


@pytest.mark.parametrize(
    "command",
    ["", *COMMANDS, "jobs list", "jobs show", "jobs cancel", "jobs retry", "queues pause"],
)
def test_help_reads_well(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command.split(), "--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"usage: hybrid-runner {command}".rstrip())
    assert "None" not in text


def test_help_of_a_real_process_names_every_command() -> None:
    text = succeeds("--help")
    assert all(f"    {name} " in text for name in COMMANDS)
    assert all(f"  {code:<9} {meaning}\n" in text for code, meaning in EXIT_CODES.items())
    assert succeeds("--version").startswith("hybrid-runner ")
