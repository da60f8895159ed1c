from datetime import timedelta
from typing import Any

import pytest

from hybrid_runner import ConfigurationError, Settings
from hybrid_runner.durations import parse_duration
from hybrid_runner.jsontext import NotStorable, encode
from hybrid_runner.settings import unknown_variables


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        (30, 30),
        (0.5, 0.5),
        ("30s", 30),
        ("5m", 300),
        ("1h30m", 5400),
        ("250ms", 0.25),
        ("2d", 172800),
        ("45", 45),
        (" 1m ", 60),
    ],
)
def test_durations_are_read_as_people_write_them(written: Any, seconds: float) -> None:
    assert parse_duration(written) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "written",
    ["", "soon", "5x", "-3s", -1, True, float("nan"), float("inf"), "1e400", "5m oops", 1e12],
)
def test_what_is_no_duration_is_refused_in_one_line(written: Any) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_duration(written)
    assert "\n" not in str(refused.value)


def test_arguments_win_over_the_environment() -> None:
    environment = {"HYBRID_RUNNER_SLOTS": "7", "HYBRID_RUNNER_GRACE": "5s", "WORKER_ID": "w1"}
    settings = Settings.load(environment, slots=9)
    assert (settings.work.slots, settings.work.grace, settings.work.worker_id) == (
        9,
        timedelta(seconds=5),
        "w1",
    )


def test_a_worker_without_a_name_makes_one_up() -> None:
    """A6"""
    assert Settings.load({}).make_worker_id() != Settings.load({}).make_worker_id()
    assert Settings.load({"WORKER_ID": "w1"}).make_worker_id() == "w1"


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ({"HYBRID_RUNNER_SLOTS": "many"}, "HYBRID_RUNNER_SLOTS"),
        ({"HYBRID_RUNNER_SLOTS": "0"}, "HYBRID_RUNNER_SLOTS"),
        ({"HYBRID_RUNNER_LEASE": "-5"}, "HYBRID_RUNNER_LEASE"),
        ({"HYBRID_RUNNER_POLL_CAP": "1s"}, "poll_base must not be longer than poll_cap"),
        ({"HYBRID_RUNNER_LOG_LEVEL": "loud"}, "HYBRID_RUNNER_LOG_LEVEL"),
    ],
)
def test_a_wrong_setting_is_one_line_that_names_it(environment: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says) as refused:
        Settings.load(environment)
    assert "\n" not in str(refused.value)


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="no setting 'slot'"):
        Settings.load({}, slot=3)


def test_a_variable_that_is_no_setting_is_named_with_a_guess() -> None:
    environment = {
        "HYBRID_RUNNER_DSN": "postgresql:///jobs",
        "HYBRID_RUNNER_LEESE": "20s",
        "HYBRID_RUNNER_AWAKE_FROM": "150",
        "HYBRID_RUNNER_PORT": "8080",
        "OTHER": "",
    }
    assert unknown_variables(environment) == [
        "the environment variable HYBRID_RUNNER_AWAKE_FROM is no setting: it is ignored",
        (
            "the environment variable HYBRID_RUNNER_LEESE is no setting (did you mean"
            " 'HYBRID_RUNNER_LEASE'?): it is ignored"
        ),
        (
            "the environment variable HYBRID_RUNNER_PORT is no setting (did you mean"
            " 'HYBRID_RUNNER_HTTP_PORT'?): it is ignored"
        ),
    ]


def test_what_kubernetes_sets_for_a_service_is_no_misspelled_setting() -> None:
    service = {
        "HYBRID_RUNNER_SERVICE_HOST": "10.0.0.7",
        "HYBRID_RUNNER_SERVICE_PORT": "80",
        "HYBRID_RUNNER_SERVICE_PORT_HTTP": "80",
        "HYBRID_RUNNER_PORT": "tcp://10.0.0.7:80",
        "HYBRID_RUNNER_PORT_80_TCP": "tcp://10.0.0.7:80",
        "HYBRID_RUNNER_PORT_80_TCP_ADDR": "10.0.0.7",
        "HYBRID_RUNNER_DATABASE_SERVICE_HOST": "10.0.0.8",
        "HYBRID_RUNNER_DATABASE_PORT": "tcp://10.0.0.8:5432",
    }
    assert unknown_variables(service) == []


@pytest.mark.parametrize("value", ["a\x00b", {"k": ["\x00"]}, {"\x00": 1}, "\\\x00"])
def test_a_nul_is_refused_wherever_it_hides(value: Any) -> None:
    with pytest.raises(NotStorable, match="NUL"):
        encode(value, "the payload")


def test_an_escaped_backslash_before_u0000_is_text_and_allowed() -> None:
    assert encode("\\u0000", "the payload") == '"\\\\u0000"'


@pytest.mark.parametrize(
    "value", [object(), {1, object()}, "\ud800", pytest.param(10**5000, id="many digits")]
)
def test_what_json_cannot_hold_is_refused(value: Any) -> None:
    with pytest.raises(NotStorable, match="the result"):
        encode(value, "the result")


def test_two_megabytes_are_refused_with_their_size() -> None:
    with pytest.raises(NotStorable, match=r"2,000,002 bytes"):
        encode("x" * 2_000_000, "the payload")
