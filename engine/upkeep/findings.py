"""What a verification found, as values to print."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How bad a finding is."""

    ERROR = "error"
    """Something the store lists cannot be given back."""
    WARNING = "warning"
    """Nothing is lost, but somebody has to look."""
    INFO = "info"
    """It mends itself."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be, and what to do next."""

    severity: Severity
    what: str
    next_step: str
    workspace: str | None = None
    checkpoint: str | None = None


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What was proved and what was found; sizes are of contents, in bytes."""

    findings: tuple[Finding, ...] = ()
    workspaces: int = 0
    checkpoints: int = 0
    objects: int = 0
    size_bytes: int = 0
    rehearsed: int = 0
    cancelled: bool = False

    @property
    def healthy(self) -> bool:
        """Whether everything that is listed can be given back; a verification that was cancelled proves nothing."""
        return not self.cancelled and all(finding.severity is not Severity.ERROR for finding in self.findings)
