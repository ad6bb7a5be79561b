"""What the gateway's memory can refuse or fail at, one class per way a caller can react.

::

    StateError
    ├── DatabaseUnusable   the file cannot be opened, read or written now (permissions, full disk, another owner)
    ├── DatabaseDamaged    the file is there but is not sound
    ├── DatabaseTooNew     the file was written by a newer version
    ├── UnknownSession     no session by that id
    ├── UnknownTurn        no turn by that id
    ├── UnknownRestore     no restore by that token
    ├── TurnRunning        the session already runs a turn
    ├── ConversationWentOn the session's head is not where it was seen, or a turn runs
    └── ButtonSpent        a button that acts once has been used up
"""


class StateError(Exception):
    """Base of all; its message is a sentence for people."""


class DatabaseUnusable(StateError):
    """The database cannot be used at the moment; what was asked for was not stored."""

    def __init__(self, path: str, detail: str) -> None:
        self.path = path
        self.detail = detail
        super().__init__(
            f"the database {path} cannot be used: {detail}. Nothing was stored. "
            "Check that its directory exists, is writable by this user and has free space, then try again."
        )


class DatabaseDamaged(StateError):
    """The database file is not sound; it was left exactly as it is."""

    def __init__(self, path: str, detail: str) -> None:
        self.path = path
        self.detail = detail
        super().__init__(
            f"the database {path} is damaged: {detail}. It was left as it is; checkpoints are not kept in it. "
            f"Restore it from a backup, or rescue what can be read with: "
            f"sqlite3 '{path}' .recover | sqlite3 rescued.db. "
            "To begin anew, move the file (and its -wal and -shm neighbours) away."
        )


class DatabaseTooNew(StateError):
    """The database was written by a newer version; it was left as it is."""

    def __init__(self, path: str, *, found: int, known: int) -> None:
        self.path = path
        self.found = found
        self.known = known
        super().__init__(
            f"the database {path} has format {found}, this version of takeback knows formats up to {known}. "
            "It was left as it is. Upgrade takeback, or point TAKEBACK_HOME at another directory."
        )


class UnknownSession(StateError):
    """No session by that id."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        super().__init__(f"there is no session {session_id!r}. See them with: gateway sessions list")


class UnknownTurn(StateError):
    """No turn by that id."""

    def __init__(self, turn_id: int) -> None:
        self.turn_id = turn_id
        super().__init__(f"there is no turn {turn_id}")


class UnknownRestore(StateError):
    """No restore by that token."""

    def __init__(self, token: str) -> None:
        self.token = token
        super().__init__(f"there is no restore {token!r}")


class TurnRunning(StateError):
    """A session runs one turn at a time."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        super().__init__(f"session {session_id} already runs a turn. Wait for it, or /stop it first.")


class ConversationWentOn(StateError):
    """The conversation is not where it stood when it was decided where it is to go; its head was not moved."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        super().__init__(
            "The conversation went on in another Takeback process meanwhile. Nothing was changed; ask again."
        )


class ButtonSpent(StateError):
    """A button that acts once has been used up; the press was not taken in."""

    def __init__(self, token: str) -> None:
        self.token = token
        super().__init__("this button has had its use, and the press changed nothing")
