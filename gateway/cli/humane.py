"""Sizes and ages as people read them."""

from datetime import UTC, datetime

_KIB = 1024
_STEPS = ((60, "s"), (60, "m"), (24, "h"))


def size(count_bytes: int) -> str:
    """``512 B``, ``4.2 MB``."""
    if count_bytes < _KIB:
        return f"{count_bytes} B"
    value = float(count_bytes)
    for unit in ("KB", "MB", "GB"):
        value /= _KIB
        # Rounded first: 1023.96 KB would read 1024.0 KB.
        if round(value, 1) < _KIB:
            return f"{value:.1f} {unit}"
    return f"{value / _KIB:.1f} TB"


def age(moment: datetime | None, now: datetime | None = None, *, exact_to_s: int = 1) -> str:
    """``2h ago``; ``never`` without a moment. A moment in the future, which a clock set back leaves, is just now.

    One that was only noted to so many seconds is just now for as long.
    """
    if moment is None:
        return "never"
    value = int(((now or datetime.now(UTC)) - moment).total_seconds())
    if value < exact_to_s:
        return "just now"
    for step, unit in _STEPS:
        if value < step:
            return f"{value}{unit} ago"
        value //= step
    return f"{value}d ago"
