from __future__ import annotations

import pytest

from hybrid_runner.display import bytes_text, percentile, progress_bar


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"),
        (1023, "1023 bytes"),
        (1024, "1.0 kB"),
        (1_500_000, "1.4 MB"),
        (5 * 2**30, "5.0 GB"),
    ],
)
def test_bytes_have_a_unit_that_a_person_can_read(count: int, text: str) -> None:
    assert bytes_text(count) == text


@pytest.mark.parametrize(("share", "full"), [(-1, 0), (0, 0), (0.5, 12), (1, 24), (7, 24)])
def test_a_bar_is_as_full_as_the_share_and_never_longer(share: float, full: int) -> None:
    bar = progress_bar(share)
    assert (bar.count("█"), len(bar)) == (full, 24)


def test_percentiles_are_values_that_were_measured() -> None:
    assert [percentile([3, 1, 2], share) for share in (0, 0.5, 0.99, 1)] == [1, 2, 3, 3]
    assert percentile([], 0.5) == 0
