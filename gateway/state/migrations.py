"""The database's format, as numbered steps; a step that has been released is never edited, only followed by another.

Each step is a tuple of statements that run in one transaction. ``PRAGMA user_version`` counts the applied ones. Nothing
here or elsewhere deletes a turn, a message or a restore: taking back moves a session's head.

Times are UTC text of one fixed form, so that they sort. ``owner`` is the running gateway process that a row belongs to
(see `gateway.state.instances`); a row of a dead owner is taken over at the next start.
"""

_FIRST = (
    """
    CREATE TABLE chats (
        id INTEGER PRIMARY KEY,
        adapter TEXT NOT NULL,
        chat TEXT NOT NULL,
        workspace TEXT,
        session_id TEXT REFERENCES sessions (id),
        created_at TEXT NOT NULL,
        UNIQUE (adapter, chat)
    )
    """,
    """
    CREATE TABLE sessions (
        id TEXT PRIMARY KEY,
        chat_id INTEGER NOT NULL REFERENCES chats (id),
        workspace TEXT NOT NULL,
        root TEXT NOT NULL,
        checkpoints INTEGER,
        head_turn_id INTEGER REFERENCES turns (id),
        started_at TEXT NOT NULL,
        ended_at TEXT
    )
    """,
    "CREATE INDEX sessions_by_chat ON sessions (chat_id)",
    """
    CREATE TABLE turns (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        session_id TEXT NOT NULL REFERENCES sessions (id),
        parent_id INTEGER REFERENCES turns (id),
        inbox_id INTEGER REFERENCES inbox (id) ON DELETE SET NULL,
        text TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('running', 'done', 'failed', 'stopped', 'interrupted')),
        checkpoint_id TEXT,
        workspace_root TEXT NOT NULL,
        owner TEXT NOT NULL,
        started_at TEXT NOT NULL,
        ended_at TEXT
    )
    """,
    "CREATE INDEX turns_by_session ON turns (session_id)",
    "CREATE INDEX turns_by_checkpoint ON turns (checkpoint_id) WHERE checkpoint_id IS NOT NULL",
    "CREATE INDEX turns_by_inbox ON turns (inbox_id) WHERE inbox_id IS NOT NULL",
    "CREATE UNIQUE INDEX one_running_turn ON turns (session_id) WHERE state = 'running'",
    """
    CREATE TABLE messages (
        id INTEGER PRIMARY KEY,
        session_id TEXT NOT NULL REFERENCES sessions (id),
        turn_id INTEGER REFERENCES turns (id),
        restore_id INTEGER REFERENCES restores (id),
        turn_mark INTEGER NOT NULL DEFAULT 0,
        position INTEGER NOT NULL,
        role TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'tool', 'note')),
        content TEXT NOT NULL,
        tool_name TEXT,
        call_id TEXT,
        arguments TEXT,
        ok INTEGER,
        created_at TEXT NOT NULL
    )
    """,
    "CREATE INDEX messages_by_turn ON messages (turn_id, position)",
    "CREATE INDEX notes_by_session ON messages (session_id) WHERE role = 'note'",
    """
    CREATE TABLE restores (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        token TEXT NOT NULL UNIQUE,
        session_id TEXT NOT NULL REFERENCES sessions (id),
        chat_id INTEGER NOT NULL REFERENCES chats (id),
        inbox_id INTEGER REFERENCES inbox (id) ON DELETE SET NULL,
        workspace_root TEXT NOT NULL,
        checkpoint_id TEXT,
        safety_id TEXT,
        old_head INTEGER REFERENCES turns (id),
        new_head INTEGER REFERENCES turns (id),
        head_moved INTEGER NOT NULL DEFAULT 0,
        kind TEXT NOT NULL CHECK (kind IN ('rollback', 'undo', 'redo', 'files')),
        state TEXT NOT NULL CHECK (state IN ('planned', 'done', 'undone', 'refused')),
        undoes INTEGER REFERENCES restores (id),
        undone_by INTEGER REFERENCES restores (id),
        turn_mark INTEGER NOT NULL,
        owner TEXT NOT NULL,
        created_at TEXT NOT NULL,
        settled_at TEXT
    )
    """,
    "CREATE INDEX restores_by_session ON restores (session_id)",
    "CREATE INDEX restores_by_inbox ON restores (inbox_id) WHERE inbox_id IS NOT NULL",
    "CREATE INDEX restores_planned ON restores (state) WHERE state = 'planned'",
    """
    CREATE TABLE shown_lists (
        chat_id INTEGER PRIMARY KEY REFERENCES chats (id),
        root TEXT NOT NULL,
        ids TEXT NOT NULL,
        shown_at TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE inbox (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        adapter TEXT NOT NULL,
        chat TEXT NOT NULL,
        event_id TEXT NOT NULL,
        user TEXT NOT NULL,
        text TEXT NOT NULL,
        edited INTEGER NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('new', 'running', 'done')),
        attempts INTEGER NOT NULL DEFAULT 0,
        owner TEXT NOT NULL,
        received_at TEXT NOT NULL,
        done_at TEXT,
        UNIQUE (adapter, event_id)
    )
    """,
    "CREATE INDEX inbox_open ON inbox (id) WHERE state <> 'done'",
    "CREATE INDEX inbox_done ON inbox (done_at) WHERE state = 'done'",
    """
    CREATE TABLE inbox_files (
        inbox_id INTEGER NOT NULL REFERENCES inbox (id) ON DELETE CASCADE,
        position INTEGER NOT NULL,
        name TEXT NOT NULL,
        content BLOB NOT NULL,
        PRIMARY KEY (inbox_id, position)
    )
    """,
    """
    CREATE TABLE outbox (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        adapter TEXT NOT NULL,
        chat TEXT NOT NULL,
        inbox_id INTEGER REFERENCES inbox (id) ON DELETE SET NULL,
        reply_to TEXT,
        payload TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('pending', 'sent', 'failed')),
        attempts INTEGER NOT NULL DEFAULT 0,
        next_attempt_at TEXT NOT NULL,
        error TEXT,
        owner TEXT NOT NULL,
        created_at TEXT NOT NULL,
        done_at TEXT
    )
    """,
    "CREATE INDEX outbox_pending ON outbox (adapter, chat, id) WHERE state = 'pending'",
    "CREATE INDEX outbox_done ON outbox (done_at) WHERE state <> 'pending'",
    "CREATE INDEX outbox_by_inbox ON outbox (inbox_id) WHERE inbox_id IS NOT NULL",
    """
    CREATE TABLE outbox_files (
        outbox_id INTEGER NOT NULL REFERENCES outbox (id) ON DELETE CASCADE,
        position INTEGER NOT NULL,
        name TEXT NOT NULL,
        content BLOB NOT NULL,
        PRIMARY KEY (outbox_id, position)
    )
    """,
)

_CONVERSATION = (
    "ALTER TABLE sessions ADD COLUMN inbox_id INTEGER REFERENCES inbox (id) ON DELETE SET NULL",
    "CREATE INDEX sessions_by_inbox ON sessions (inbox_id) WHERE inbox_id IS NOT NULL",
    "ALTER TABLE restores ADD COLUMN retries INTEGER REFERENCES turns (id)",
    """
    CREATE TABLE compactions (
        id INTEGER PRIMARY KEY,
        session_id TEXT NOT NULL REFERENCES sessions (id),
        turn_id INTEGER NOT NULL REFERENCES turns (id),
        summary TEXT NOT NULL,
        made_by TEXT NOT NULL,
        created_at TEXT NOT NULL
    )
    """,
    "CREATE INDEX compactions_by_session ON compactions (session_id)",
    """
    CREATE TABLE approvals (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        turn_id INTEGER NOT NULL REFERENCES turns (id),
        chat_id INTEGER NOT NULL REFERENCES chats (id),
        tool TEXT NOT NULL,
        subject TEXT NOT NULL,
        reason TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('pending', 'approved', 'denied', 'expired', 'closed')),
        answered_by TEXT,
        answer_inbox_id INTEGER REFERENCES inbox (id) ON DELETE SET NULL,
        asked_at TEXT NOT NULL,
        answered_at TEXT
    )
    """,
    "CREATE INDEX approvals_by_turn ON approvals (turn_id)",
    "CREATE INDEX approvals_by_inbox ON approvals (answer_inbox_id) WHERE answer_inbox_id IS NOT NULL",
    "CREATE INDEX approvals_pending ON approvals (chat_id, id) WHERE state = 'pending'",
)

_ACCESS = (
    "ALTER TABLE inbox ADD COLUMN circles TEXT NOT NULL DEFAULT '[]'",
    "ALTER TABLE inbox ADD COLUMN pressed TEXT",
    """
    CREATE TABLE admissions (
        adapter TEXT NOT NULL,
        user TEXT NOT NULL,
        role TEXT NOT NULL CHECK (role IN ('admin', 'user')),
        chat TEXT NOT NULL,
        admitted_by TEXT NOT NULL,
        admitted_at TEXT NOT NULL,
        told_at TEXT,
        PRIMARY KEY (adapter, user)
    )
    """,
    "CREATE INDEX admissions_untold ON admissions (adapter) WHERE told_at IS NULL",
    """
    CREATE TABLE pairing_codes (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        adapter TEXT NOT NULL,
        chat TEXT NOT NULL,
        user TEXT NOT NULL,
        salt BLOB NOT NULL,
        digest BLOB NOT NULL,
        expires_at TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE buttons (
        token TEXT PRIMARY KEY,
        adapter TEXT NOT NULL,
        chat TEXT NOT NULL,
        command TEXT NOT NULL,
        person TEXT,
        answers INTEGER,
        outbox_id INTEGER,
        once INTEGER NOT NULL DEFAULT 0,
        batch TEXT,
        spent_by TEXT,
        made_at TEXT NOT NULL
    )
    """,
    "CREATE INDEX buttons_by_batch ON buttons (batch) WHERE batch IS NOT NULL",
    "CREATE INDEX buttons_by_age ON buttons (made_at)",
    """
    CREATE TABLE lists_answered (
        inbox_id INTEGER PRIMARY KEY,
        root TEXT NOT NULL,
        ids TEXT NOT NULL,
        shown_at TEXT NOT NULL
    )
    """,
)

_SENT_FILES = (
    """
    CREATE TABLE turn_files (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        turn_id INTEGER NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
        path TEXT NOT NULL,
        media_type TEXT NOT NULL,
        size_bytes INTEGER NOT NULL,
        removed INTEGER NOT NULL DEFAULT 0
    )
    """,
    "CREATE INDEX turn_files_by_turn ON turn_files (turn_id)",
)

_MODELS = ("ALTER TABLE sessions ADD COLUMN model TEXT",)

_MOVES = (
    "ALTER TABLE chats ADD COLUMN known_as TEXT",
    """
    CREATE TABLE moves (
        adapter TEXT NOT NULL,
        before TEXT NOT NULL,
        now TEXT NOT NULL,
        moved_at TEXT NOT NULL,
        PRIMARY KEY (adapter, before)
    )
    """,
    "ALTER TABLE approvals ADD COLUMN inbox_mark INTEGER NOT NULL DEFAULT 0",
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (_FIRST, _CONVERSATION, _ACCESS, _SENT_FILES, _MODELS, _MOVES)
"""Every step, oldest first; the format's number is how many there are."""
