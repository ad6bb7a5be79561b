"""Files that came with the messages of turns: where each is kept, and when it has been kept long enough.

They are written down before they are kept, so that none lies in a workspace that nobody knows of.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from gateway.state.clock import Clock, to_text
from gateway.state.database import Database, Row

KEPT = timedelta(days=30)
"""How long a file is kept after the last turn that it came with."""


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file that came with a message: where it is in the workspace, what it is, and how large it was."""

    path: str
    media_type: str
    size_bytes: int

    @property
    def name(self) -> str:
        """What the person called it."""
        return self.path.rpartition("/")[2].partition("-")[2]


class Sent:
    """Knows the files of turns."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def add(self, turn_id: int, files: Sequence[SentFile]) -> None:
        """Write down what came with a turn's message, besides what is known of it already."""
        async with self._database.transaction() as tx:
            for file in files:
                await tx.execute(
                    "INSERT INTO turn_files (turn_id, path, media_type, size_bytes) VALUES (?, ?, ?, ?)",
                    *(turn_id, file.path, file.media_type, file.size_bytes),
                )

    async def forget(self, turn_id: int, path: str) -> None:
        """Strike out a file that could not be kept."""
        async with self._database.transaction() as tx:
            await tx.execute("DELETE FROM turn_files WHERE turn_id = ? AND path = ?", turn_id, path)

    async def of_turn(self, turn_id: int) -> tuple[SentFile, ...]:
        """What came with a turn's message."""
        rows = await self._database.fetch_all("SELECT * FROM turn_files WHERE turn_id = ? ORDER BY id", turn_id)
        return tuple(map(_file, rows))

    async def old(self) -> Mapping[str, Sequence[str]]:
        """The paths of files that have been kept long enough and not been removed, by the roots they lie below."""
        rows = await self._database.fetch_all(
            "SELECT t.workspace_root AS root, f.path FROM turn_files f JOIN turns t ON t.id = f.turn_id"
            " WHERE f.removed = 0 GROUP BY t.workspace_root, f.path HAVING max(t.started_at) < ? ORDER BY root, path",
            to_text(self._clock() - KEPT),
        )
        found: dict[str, list[str]] = {}
        for row in rows:
            found.setdefault(row["root"], []).append(row["path"])
        return found

    async def removed(self, root: str, paths: Sequence[str]) -> None:
        """Note that files are there no more; that they came stays known."""
        async with self._database.transaction() as tx:
            for path in paths:
                await tx.execute(
                    "UPDATE turn_files SET removed = 1 WHERE path = ?"
                    " AND turn_id IN (SELECT id FROM turns WHERE workspace_root = ?)",
                    *(path, root),
                )


async def files_of_session(database: Database, session_id: str) -> Mapping[int, tuple[SentFile, ...]]:
    """What came with the messages of a session, by turn."""
    rows = await database.fetch_all(
        "SELECT f.* FROM turn_files f JOIN turns t ON t.id = f.turn_id WHERE t.session_id = ? ORDER BY f.id", session_id
    )
    found: dict[int, tuple[SentFile, ...]] = {}
    for row in rows:
        found[row["turn_id"]] = (*found.get(row["turn_id"], ()), _file(row))
    return found


def _file(row: Row) -> SentFile:
    return SentFile(row["path"], row["media_type"], row["size_bytes"])
