"""The command itself: wrong use in one line, JSON on stdout, files in a folder."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from hybrid_runner.bench import plots, sizes
from hybrid_runner.bench.sizes import Sizes
from hybrid_runner.cli import main
from hybrid_runner.cli.commands import bench
from tests.cli.running import NOBODY, the_line

TINY = Sizes(rounds=1, bulk_jobs=100)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "QUICK", TINY)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["drian"], "there is no 'drian' (did you mean 'drain'?)"),
        (["everything"], "there is no 'everything' (there are: pickup, paced"),
        (["--qick"], "there is no option --qick (did you mean '--quick'?)"),
        (["--dsn", ""], "it is empty"),
    ],
)
def test_wrong_use_is_one_line(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["bench", *arguments])
    assert complaint in the_line(code, capsys.readouterr().err, 2)


def test_a_server_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["bench", "bulk", "--dsn", NOBODY])
    assert "127.0.0.1:1" in the_line(code, capsys.readouterr().err, 1)


def test_a_folder_that_cannot_be_written_is_one_line_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    code = main(["bench", "bulk", "--dsn", NOBODY, "--output", str(tmp_path / "file" / "folder")])
    assert "cannot write to" in the_line(code, capsys.readouterr().err, 1)


def test_json_is_all_that_is_on_stdout(
    tiny: None, empty_dsn: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "bulk", "--quick", "--json", "--dsn", empty_dsn]) == 0
    said = capsys.readouterr()
    document = json.loads(said.out)
    assert [*document["scenarios"]] == ["bulk"]
    assert document["about"]["sizes"] == "quick"
    assert said.err.startswith("bulk: done, ")


def test_the_output_folder_gets_the_results_and_a_picture(
    tiny: None, empty_dsn: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["bench", "bulk", "--quick", "--dsn", empty_dsn, "--output", str(tmp_path / "new")])
        == 0
    )
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [
        "bulk.png",
        "results.json",
    ]
    assert "bulk" in json.loads((tmp_path / "new" / "results.json").read_text())["scenarios"]
    assert "INSERT … unnest" in capsys.readouterr().out


def test_without_matplotlib_one_line_says_how_to_get_pictures(
    tiny: None,
    empty_dsn: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bench, "can_draw", lambda: False)
    assert main(["bench", "bulk", "--quick", "--dsn", empty_dsn, "--output", str(tmp_path)]) == 0
    assert capsys.readouterr().err.splitlines()[1:] == [plots.ADVICE]
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]


def test_on_a_terminal_a_bar_shows_what_is_going_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    terminal = SimpleNamespace(isatty=lambda: True, write=written.append, flush=lambda: None)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    progress = bench._Progress(2)
    progress.show("drain", 0.0, "")
    progress.show("drain", 0.5, "round 2: worker")
    progress.show("drain", 1.0, "")
    text = "".join(written)
    assert "██████░░░░░░░░░░░░░░░░░░ drain round 2: worker" in text
    assert "drain: done, " in text


def test_sizes_are_those_of_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "measuring.md").read_text(encoding="utf-8")
    for number in (
        sizes.FULL.drain_jobs,
        sizes.FULL.horizon_jobs,
        sizes.FULL.backlog_jobs,
        sizes.FULL.bulk_jobs,
    ):
        assert f"{number:,}" in page
