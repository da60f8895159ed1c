"""Tokens that let somebody without a login signal one job under one name."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from hybrid_runner import ConfigurationError
from hybrid_runner.waiting.callback_tokens import (
    callback_key,
    callback_token,
    is_genuine,
    read_token,
    secret_of_job,
)

SECRET, OTHER = b"s" * 32, b"o" * 32


def token(job_id: int = 42, name: str = "approved", secret: bytes = SECRET) -> str:
    return callback_token(secret_of_job(secret, job_id), job_id, name)


@pytest.mark.parametrize("job_id", [0, 1, 42, 2**63 - 1, -1])
@pytest.mark.parametrize("name", ["a", "approved", "x" * 64, "A-1_b.c"])
def test_a_token_says_whose_it_is_and_is_genuine_under_its_secret_alone(
    job_id: int, name: str
) -> None:
    said = read_token(token(job_id, name))
    assert said is not None
    assert (said.job_id, said.name, said.key) == (job_id, name, f"{name}:{job_id}")
    assert is_genuine(said, SECRET)
    assert not is_genuine(said, OTHER)


@pytest.mark.parametrize("name", ["a", "ab", "abc"])
def test_no_bit_of_a_token_can_be_changed(name: str) -> None:
    """Nor can it be written in two ways."""
    text = token(name=name)
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    for bit in range(8 * len(raw)):
        changed = bytearray(raw)
        changed[bit // 8] ^= 1 << bit % 8
        said = read_token(base64.urlsafe_b64encode(bytes(changed)).rstrip(b"=").decode())
        assert said is None or not is_genuine(said, SECRET), bit
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    for last in alphabet:
        other = text[:-1] + last
        said = read_token(other)
        assert other == text or said is None or not is_genuine(said, SECRET), last


def test_with_the_secret_of_one_job_no_token_of_another_can_be_made() -> None:
    forged = read_token(callback_token(secret_of_job(SECRET, 42), 43, "approved"))
    assert forged is not None
    assert not is_genuine(forged, SECRET)


@pytest.mark.parametrize(
    "text",
    ["", "approved:42", "x" * 44, "A" * 44, "A" * 4096, token() + "=", token()[:-1], "é" * 44, "-"],
)
def test_what_is_no_token_is_none(text: str) -> None:
    said = read_token(text)
    assert said is None or not is_genuine(said, SECRET)


@pytest.mark.parametrize("name", ["", "a:b", "a b", "x" * 65, "é", "a/b", "a\n", 3, None])
def test_a_name_that_cannot_be_is_refused_in_one_line(name: Any) -> None:
    with pytest.raises(ConfigurationError, match="is no name of a callback: use 1 to 64 letters"):
        callback_key(42, name)
