"""Gaps as the store's files hold them."""

from collections.abc import Sequence
from typing import Any

from engine.model import Gap, GapReason


def encode_gap(gap: Gap) -> list[Any]:
    """Return a gap as JSON holds it."""
    return [gap.path, gap.reason.value, gap.detail, gap.older]


def decode_gap(value: Sequence[Any]) -> Gap:
    """Return a gap from what `encode_gap` made."""
    return Gap(value[0], GapReason(value[1]), value[2], value[3])
