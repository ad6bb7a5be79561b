"""Several chats in one workspace: what each takes back, keeps, merges, and says of it."""

from pathlib import Path

import pytest

from tests.gateway.commands.kit import Chat, Gateway, tree_of

LINES = [f"line {number}\n" for number in range(1, 100)]


KEPT = (
    "↷ Kept other chats' changes: "
    "app.py (written by test:bob; the same lines were changed on both sides), bob.txt (written by test:bob)"
)
WHAT_TO_DO = (
    "  To take those back too: /undo in that chat, then /rollback 4 here; "
    "or /rollback 4 --all, which restores everything."
)


def text_of(path: Path) -> str:
    return path.read_text()


@pytest.fixture
def shared(app: Path) -> Path:
    """A file that is long enough for two."""
    path = app / "shared.txt"
    path.write_text("".join(LINES))
    return path


@pytest.fixture
async def ann(gateway: Gateway, shared: Path) -> Chat:
    """A chat that wrote the first line, before another chat wrote the last."""
    chat = gateway.chat("ann")
    await chat.say(f"$ sed -i '1s/.*/ANN/' {shared.name}")
    await gateway.chat("bob").say(f"$ sed -i '99s/.*/BOB/' {shared.name}")
    return chat


async def test_undo_and_redo_move_only_the_lines_of_their_chat(gateway: Gateway, ann: Chat, shared: Path) -> None:
    bob = gateway.chat("bob")

    undone = await ann.say("/undo")
    assert "  Merged: shared.txt (keeps what test:bob wrote)" in undone.lines
    assert text_of(shared) == "".join([*LINES[:-1], "BOB\n"])
    await bob.say(f"$ sed -i '50s/.*/BOB TOO/' {shared.name}")

    redone = await ann.say("/redo")
    assert "  Merged: shared.txt (keeps what test:bob wrote)" in redone.lines
    assert text_of(shared) == "".join(["ANN\n", *LINES[1:49], "BOB TOO\n", *LINES[50:-1], "BOB\n"])

    for chat in (bob, ann, bob):
        await chat.say("/undo")
    assert text_of(shared) == "".join(LINES)


async def test_preview_shows_the_merge_and_the_restore_does_it(ann: Chat, shared: Path) -> None:
    assert (await ann.say("/rollback")).text.count("sed -i") == 2
    shown = await ann.say("/rollback diff 2")

    done = await ann.say("/rollback 2")

    assert "  merge: shared.txt (keeps what test:bob wrote)" in shown.lines
    assert "  Merged: shared.txt (keeps what test:bob wrote)" in done.lines
    assert text_of(shared) == "".join([*LINES[:-1], "BOB\n"])


async def test_named_file_is_merged_too_and_all_restores_it_whole(ann: Chat, shared: Path) -> None:
    await ann.say("/rollback")

    said = await ann.say("/rollback 2 shared.txt")
    assert "  Merged: shared.txt (keeps what test:bob wrote)" in said.lines

    await ann.say("/rollback 2 --all")
    assert text_of(shared) == "".join(LINES)


async def test_overlap_is_refused_with_chat_reason_and_what_to_do(gateway: Gateway, app: Path) -> None:
    ann, bob = gateway.chat("ann"), gateway.chat("bob")
    await ann.say("/write app.py\nann\n")
    await ann.say("/write ann.txt\nann\n")
    await bob.say("/write app.py\nann and bob\n")
    await bob.say("/write bob.txt\nbob\n")
    await ann.say("/rollback")

    said = await ann.say("/rollback 4")

    assert tree_of(app)["app.py"] == b"ann and bob\n"
    assert "ann.txt" not in tree_of(app)
    assert said.lines[1:] == [
        "  Removed: ann.txt",
        KEPT,
        WHAT_TO_DO,
        "↩ Undid 2 turns. /redo brings files and turns back.",
    ]

    await bob.say("/undo")
    await bob.say("/undo")
    await ann.say("/rollback 4")
    assert tree_of(app) == {"app.py": b"one\ntwo\n", "notes.md": b"mine\n"}


async def test_redo_never_takes_back_what_another_chat_did_since(gateway: Gateway, app: Path) -> None:
    ann, bob = gateway.chat("ann"), gateway.chat("bob")
    await ann.say("/write app.py\nann\n")
    await ann.say("/undo")
    await bob.say("/write bob.txt\nbob\n")
    await bob.say("/write app.py\nbob\n")

    said = await ann.say("/redo")

    assert tree_of(app) == {"app.py": b"bob\n", "bob.txt": b"bob\n", "notes.md": b"mine\n"}
    assert "app.py (written by test:bob; the same lines were changed on both sides)" in said.text


async def test_going_back_to_another_chats_checkpoint_says_whose_changes_go(gateway: Gateway, app: Path) -> None:
    ann, bob = gateway.chat("ann"), gateway.chat("bob")
    await ann.say("/write ann.txt\nann\n")
    await bob.say("/write bob.txt\nbob\n")
    await ann.say("/rollback")
    what = "what test:bob changed there since, as this is a checkpoint of that chat; its conversation stays as it is."

    previewed = await ann.say("/rollback diff 1")
    restored = await ann.say("/rollback 1")

    assert previewed.lines[-1] == f"⚠ Would also take back {what}"
    assert f"⚠ Also took back {what}" in restored.lines
    assert (app / "ann.txt").exists()
    assert not (app / "bob.txt").exists()
    assert await bob.head() is not None
    assert "Also took back" not in (await ann.say("/rollback 2")).text


async def test_another_chats_checkpoint_undoes_no_turn_before_it_although_the_clock_was_set_back(
    gateway: Gateway, ann: Chat, shared: Path
) -> None:
    """Turn 1 is Ann's, by a clock that was hours ahead; turn 2 is Bob's."""
    async with gateway.memory.database.transaction() as tx:
        await tx.execute("UPDATE turns SET started_at = '2999-01-01T00:00:00.000000Z' WHERE id = 1")

    restored = await ann.say("/rollback 1")

    assert restored.lines[1] == f"  Restored: {shared.name}"
    assert text_of(shared) == "".join(["ANN\n", *LINES[1:]])
    assert await ann.head() == 1
