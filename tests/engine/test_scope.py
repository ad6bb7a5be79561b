"""Which paths a restore is limited to, and whose changes go with it."""

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from engine.checkpoints.capture import Captured
from engine.checkpoints.history import Held
from engine.host.git import Git
from engine.model import Checkpoint, CheckpointKind, Entry, EntryKind, Gap, GapReason, TurnRef
from engine.restore.plan import Difference
from engine.restore.scope import Request, claim_of, find_passed, scope_of
from engine.restore.selection import Selection, Spec
from engine.restore.sharing import Claim
from engine.store.ledger import Ledger, LedgerEntry, RestoreRecord, WriteRecord
from engine.store.rows import Row, Rows

ONE = Entry(EntryKind.FILE, 0o644, "1" * 40)
FOLDER = Entry(EntryKind.DIRECTORY, 0o755, None)


def ledger() -> Ledger:
    made = Ledger()
    for number, (turn, paths) in enumerate(
        [("t", "abc"), ("t", "bd"), ("u", "ae"), ("t", "f"), ("v", "g")],
        start=1,
    ):
        made.add(WriteRecord(number, "chat", "s", turn, None, None, dict.fromkeys(paths, ONE)))
    made.add(RestoreRecord(6, "k6", "x", None, {"h": LedgerEntry(ONE, "", "", 1)}, {}, "asker"))
    return made


def held(
    ledger_number: int = 1, kind: CheckpointKind = CheckpointKind.TURN, turn: str = "", token: str | None = None
) -> Held:
    of = TurnRef(turn, "s", "t") if turn else None
    checkpoint = Checkpoint("c" * 40, 5, kind, "before", datetime(2026, 3, 16, tzinfo=UTC), of, restore_token=token)
    return Held(checkpoint, "", frozenset(), ledger_number)


def captured(*paths: str, gaps: tuple[str, ...] = ()) -> Captured:
    rows = Rows.of({path: Row(ONE) for path in paths})
    found = tuple(Gap(path, GapReason.TOO_LARGE) for path in gaps)
    return Captured("", "", Rows.of({}), rows, frozenset(), found, frozenset())


@pytest.fixture(scope="module")
def git(tmp_path_factory: pytest.TempPathFactory) -> Git:
    store: Path = tmp_path_factory.mktemp("store")
    subprocess.run(["git", "init", "-q", "--bare", str(store)], check=True)
    return Git(str(store), search_path="/usr/local/bin:/usr/bin:/bin")


def pattern(body: str) -> Selection:
    return Selection((Spec(body, f":(top){body}", body, literal=False),))


def name(body: str) -> Selection:
    return Selection((Spec(body, f":(top,literal){body}", body, literal=True),))


def scope(
    git: Git, request: Request, selection: Selection | None, *differences: Difference, gaps: tuple[str, ...] = ()
) -> frozenset[str] | None:
    return scope_of(git, request, held(), ledger(), selection, differences, captured=captured(gaps=gaps))


def test_paths_that_tools_changed_since_and_that_do_not_differ_are_found_in_order() -> None:
    passed = find_passed(ledger(), held(ledger_number=2), captured("a", "f", "x"), {"e"})

    assert passed == [Difference("a", ONE, ONE), Difference("f", ONE, ONE), Difference("g", None, None)]


def test_restore_of_all_has_no_limits(git: Git) -> None:
    assert scope(git, Request("c"), None, Difference("a", None, ONE)) is None


def test_turns_limit_a_restore_to_what_they_wrote_after_the_checkpoint(git: Git) -> None:
    assert scope(git, Request("c", turns=("t",)), None) == {"b", "d", "f"}
    assert scope(git, Request("c", turns=("t", "v")), None) == {"b", "d", "f", "g"}


def test_selection_takes_differences_and_gaps_that_it_matches(git: Git) -> None:
    differences = [Difference("a.txt", ONE, None), Difference("b.py", ONE, None), Difference("d/c.txt", None, ONE)]

    chosen = scope(git, Request("c"), pattern("*.txt"), *differences, gaps=("big.txt", "big.py"))

    assert chosen == {"a.txt", "d/c.txt", "big.txt"}


def test_selection_of_turns_takes_what_both_mean(git: Git) -> None:
    differences = [Difference(path, ONE, None) for path in "abf"]

    assert scope(git, Request("c", turns=("t",)), pattern("[af]"), *differences) == {"f"}


@pytest.mark.parametrize("sides", [(FOLDER, None), (None, FOLDER), (ONE, FOLDER)], ids=["came", "went", "became"])
def test_directory_goes_with_all_that_differs_in_it_and_not_with_a_part(
    git: Git, sides: tuple[Entry | None, Entry | None]
) -> None:
    directories = [Difference(path, *sides) for path in ("whole", "part", "whole/sub", "none", "wholesale")]
    files = [Difference(path, ONE, None) for path in ("whole/sub/a.txt", "whole/b.txt", "part/c.txt", "part/d.py")]

    assert scope(git, Request("c"), pattern("*.txt"), *directories, *files) == {
        "whole",
        "whole/sub",
        "whole/sub/a.txt",
        "whole/b.txt",
        "part/c.txt",
    }


def test_directory_named_is_chosen_even_where_nothing_in_it_is_a_file(git: Git) -> None:
    directories = [Difference(path, FOLDER, None) for path in ("d", "d/e", "dd", "x")]

    assert scope(git, Request("c"), name("d"), *directories, Difference("f", ONE, None)) == {"d", "d/e"}


# --- whose changes


@pytest.mark.parametrize(
    ("request_", "target", "claim"),
    [
        (Request("c"), held(turn="b"), Claim(None)),
        (Request("c", turns=("t",)), held(kind=CheckpointKind.SAFETY), Claim(None, frozenset({"t"}), redoes=True)),
        (Request("c", chat="a"), held(), Claim(frozenset({"a"}))),
        (Request("c", chat="a"), held(kind=CheckpointKind.MANUAL, turn="b"), Claim(frozenset({"a", "b"}))),
        (
            Request("c", chat="a", turns=("t", "u")),
            held(kind=CheckpointKind.SAFETY, turn="b", token="k6"),
            Claim(frozenset({"a", "b", "asker"}), frozenset({"t", "u"}), redoes=True),
        ),
        (
            Request("c", chat="a"),
            held(kind=CheckpointKind.SAFETY, token="unknown"),
            Claim(frozenset({"a"}), redoes=True),
        ),
    ],
    ids=["nobody asks", "turns of nobody", "a chat", "another chat's", "a restore's", "an unknown restore's"],
)
def test_claim_is_of_who_asks_and_of_whom_the_checkpoint_is(request_: Request, target: Held, claim: Claim) -> None:
    assert claim_of(request_, target, ledger()) == claim
