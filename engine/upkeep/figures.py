"""Numbers in what upkeep says to people."""

from engine.checkpoints.scan import megabytes

_KIB = 1024


def counted(count: int, noun: str) -> str:
    """Return ``1 day`` or ``2 days``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def sized(count_bytes: int) -> str:
    """Return ``12.3 MB``, and what would read 0.0 MB in a smaller unit."""
    return megabytes(count_bytes) if count_bytes >= _KIB * _KIB else f"{count_bytes / _KIB:.1f} KB"
