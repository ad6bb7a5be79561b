"""Whole conversations read from the database, as plain trees that JSON can hold: for looking and exporting."""

import json
from typing import Any

from gateway.state.database import Database, Row, open_database
from gateway.state.errors import UnknownSession

Transcript = dict[str, Any]

_SESSIONS = """
    SELECT s.id, c.adapter, c.chat, s.workspace, s.root, s.checkpoints, s.head_turn_id AS head,
        s.started_at, s.ended_at, (SELECT count(*) FROM turns t WHERE t.session_id = s.id) AS turns
    FROM sessions s JOIN chats c ON c.id = s.chat_id
"""
_ACTIVE = """
    WITH RECURSIVE chain (id) AS (
        SELECT head_turn_id FROM sessions WHERE id = ? AND head_turn_id IS NOT NULL
        UNION ALL SELECT t.parent_id FROM chain JOIN turns t ON t.id = chain.id WHERE t.parent_id IS NOT NULL
    ) SELECT id FROM chain
"""
_TURNS = (
    "SELECT id, parent_id, text, state, checkpoint_id, started_at, ended_at FROM turns WHERE session_id = ? ORDER BY id"
)
_MESSAGES = """
    SELECT turn_id, role, content, tool_name, arguments, ok, created_at FROM messages
    WHERE session_id = ? AND role <> 'note' ORDER BY turn_id, position, id
"""
_FILES = """
    SELECT f.turn_id, f.path, f.media_type, f.size_bytes FROM turn_files f JOIN turns t ON t.id = f.turn_id
    WHERE t.session_id = ? ORDER BY f.id
"""
_NOTES = "SELECT turn_id, content, created_at FROM messages WHERE session_id = ? AND role = 'note' ORDER BY id"
_RESTORES = """
    SELECT kind, state, checkpoint_id, safety_id, old_head, new_head, created_at, settled_at FROM restores
    WHERE session_id = ? ORDER BY id
"""
_COMPACTIONS = "SELECT turn_id, summary, made_by, created_at FROM compactions WHERE session_id = ? ORDER BY id"
_APPROVALS = """
    SELECT a.id, a.turn_id, a.tool, a.subject, a.reason, a.state, a.answered_by, a.asked_at, a.answered_at
    FROM approvals a JOIN turns t ON t.id = a.turn_id WHERE t.session_id = ? ORDER BY a.id
"""


async def read_sessions(path: str, limit: int) -> list[Transcript]:
    """Sessions, newest first.

    Raises:
        StateError: the database cannot be read.
    """
    async with open_database(path) as database:
        rows = await database.fetch_all(f"{_SESSIONS} ORDER BY s.started_at DESC, s.rowid DESC LIMIT ?", limit)
        return [_tree(row) for row in rows]


async def read_ended(path: str) -> list[str]:
    """The ids of all sessions that are over; none of them is ever begun again.

    Raises:
        StateError: the database cannot be read.
    """
    async with open_database(path) as database:
        return [
            str(row["id"]) for row in await database.fetch_all("SELECT id FROM sessions WHERE ended_at IS NOT NULL")
        ]


async def read_transcript(path: str, session_id: str) -> Transcript:
    """A session with everything in it; a turn that was taken back is not ``active``.

    Raises:
        UnknownSession: there is none by that id.
        StateError: the database cannot be read.
    """
    async with open_database(path) as database:
        session = await database.fetch_one(f"{_SESSIONS} WHERE s.id = ?", session_id)
        if session is None:
            raise UnknownSession(session_id)
        return {
            "session": _tree(session),
            "turns": await _turns(database, session_id),
            "notes": [_tree(row) for row in await database.fetch_all(_NOTES, session_id)],
            "compactions": [_tree(row) for row in await database.fetch_all(_COMPACTIONS, session_id)],
            "approvals": [_tree(row) for row in await database.fetch_all(_APPROVALS, session_id)],
            "restores": [_tree(row) for row in await database.fetch_all(_RESTORES, session_id)],
        }


async def _turns(database: Database, session_id: str) -> list[Transcript]:
    active = {row["id"] for row in await database.fetch_all(_ACTIVE, session_id)}
    messages: dict[int, list[Transcript]] = {}
    for row in await database.fetch_all(_MESSAGES, session_id):
        message = _tree(row)
        if message["arguments"] is not None:
            message["arguments"] = json.loads(message["arguments"])
        if message["ok"] is not None:
            message["ok"] = bool(message["ok"])
        messages.setdefault(message.pop("turn_id"), []).append(message)
    turns = [_tree(row) for row in await database.fetch_all(_TURNS, session_id)]
    files: dict[int, list[Transcript]] = {}
    for row in await database.fetch_all(_FILES, session_id):
        file = _tree(row)
        files.setdefault(file.pop("turn_id"), []).append(file)
    return [
        {
            **turn,
            "active": turn["id"] in active,
            "files": files.get(turn["id"], []),
            "messages": messages.get(turn["id"], []),
        }
        for turn in turns
    ]


def _tree(row: Row) -> Transcript:
    return {name: row[name] for name in row.keys()}  # noqa: SIM118 - a row iterates over its values
