"""The gateway's own directory: where everything it keeps stands, and who may read it.

Light on purpose: the command line asks for a path here before anything heavier is imported.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass

HOME_VARIABLE = "TAKEBACK_HOME"


class HomeUnusable(Exception):
    """The home cannot be made or entered."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path} cannot be the gateway's home: {reason}. Set {HOME_VARIABLE} to a directory of yours.")


@dataclass(frozen=True, slots=True)
class Home:
    """Every path below ``TAKEBACK_HOME``; an absolute path, nothing of it needs to exist."""

    path: str

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Home":
        """Take ``TAKEBACK_HOME``, else ``~/.takeback``."""
        named = environment.get(HOME_VARIABLE) or os.path.join("~", ".takeback")
        return cls(os.path.abspath(os.path.expanduser(named)))

    @property
    def config(self) -> str:
        """The configuration file."""
        return os.path.join(self.path, "config.yaml")

    @property
    def database(self) -> str:
        """The gateway's SQLite file."""
        return os.path.join(self.path, "gateway.db")

    @property
    def checkpoints(self) -> str:
        """The base of the checkpoint store."""
        return os.path.join(self.path, "checkpoints")

    @property
    def log(self) -> str:
        """Where a chat in the terminal writes its log."""
        return os.path.join(self.path, "gateway.log")

    @property
    def history(self) -> str:
        """What was typed in the terminal chat."""
        return os.path.join(self.path, "chat_history")

    @property
    def attachments(self) -> str:
        """Where the terminal chat puts files that a reply carries."""
        return os.path.join(self.path, "attachments")

    @property
    def sample(self) -> str:
        """The workspace for a first try."""
        return os.path.join(self.path, "sample")

    def ensure(self) -> None:
        """Make the home, for its owner only, if it is not there; idempotent.

        Raises:
            HomeUnusable: it cannot be made, or something else stands there.
        """
        try:
            os.makedirs(self.path, mode=0o700, exist_ok=True)
        except FileExistsError:
            raise HomeUnusable(self.path, "it is not a directory") from None
        except OSError as error:
            raise HomeUnusable(self.path, error.strerror or "it cannot be made") from error
        if not os.access(self.path, os.R_OK | os.W_OK | os.X_OK):
            raise HomeUnusable(self.path, "it is not writable for this user")
