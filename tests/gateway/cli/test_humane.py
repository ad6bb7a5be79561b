"""Sizes and ages read as people say them."""

from datetime import UTC, datetime, timedelta

import pytest

from gateway.cli.humane import age, size

MB = 1024 * 1024
NOW = datetime(2026, 3, 16, 4, 36, tzinfo=UTC)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KB"),
        (MB - 1, "1.0 MB"),
        (int(142.3 * MB), "142.3 MB"),
        (5 * 1024 * MB, "5.0 GB"),
        (3 * MB * MB, "3.0 TB"),
    ],
)
def test_a_size_has_the_unit_that_fits(count, text):
    assert size(count) == text


@pytest.mark.parametrize(
    ("before", "text"),
    [
        (timedelta(0), "just now"),
        (timedelta(seconds=-9), "just now"),
        (timedelta(seconds=59), "59s ago"),
        (timedelta(minutes=5), "5m ago"),
        (timedelta(hours=2, minutes=59), "2h ago"),
        (timedelta(days=9, hours=5), "9d ago"),
    ],
)
def test_an_age_has_one_unit(before, text):
    assert age(NOW - before, NOW) == text


def test_what_is_known_to_the_minute_is_not_told_to_the_second():
    ages = [age(NOW - timedelta(seconds=seconds), NOW, exact_to_s=60) for seconds in (0, 59, 60)]

    assert ages == ["just now", "just now", "1m ago"]


def test_what_never_happened_is_never():
    assert age(None) == "never"
