"""Names and commits as they are read without git: what git itself says of them, whatever the store looks like."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from engine.model import Checkpoint
from engine.store.refs import checkpoint_ref, list_names
from tests.engine.lab import Lab


@pytest.fixture
def started(lab: Lab) -> list[tuple[str, ...]]:
    """Every git process that the lab's engine starts from now on."""
    calls: list[tuple[str, ...]] = []
    lab.settings["before_git"] = lambda arguments: calls.append(tuple(arguments))
    lab.engine = lab.open_engine()
    assert lab.engine.availability() is None
    calls.clear()
    return calls


def three(lab: Lab) -> list[Checkpoint]:
    for number in range(3):
        lab.edit("a.txt", f"{number}\n")
        lab.write("b.txt", f"{number}\n")
    return lab.checkpoints()


def git(lab: Lab, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "--git-dir", str(lab.store), *arguments],
        check=True,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"]},
    )
    return done.stdout


def as_git_says(lab: Lab, prefix: str) -> dict[str, str]:
    lines = git(lab, "for-each-ref", "--format=%(refname) %(objectname)", prefix).splitlines()
    return dict(line.split(" ") for line in lines)


def read(lab: Lab, prefix: str) -> dict[str, str]:
    return list_names(lab.engine._store.git, prefix)


@pytest.mark.parametrize("packed", ["none", "some", "all"])
def test_names_are_those_that_git_lists(lab: Lab, packed: str) -> None:
    three(lab)
    below = f"refs/takeback/{lab.workspace.hash}"
    if packed != "none":
        git(lab, "pack-refs", "--all")
    if packed == "some":
        lab.write("b.txt", "more\n")

    for prefix in (
        "refs",
        below,
        f"{below}/checkpoints",
        f"{below}/base",
        f"{below}/checkpoints/0000000",
        "refs/other",
    ):
        names = read(lab, prefix)

        assert names == as_git_says(lab, prefix)
        assert list(names) == list(as_git_says(lab, prefix))
    assert len(read(lab, f"{below}/checkpoints")) == (4 if packed == "some" else 3)


@pytest.mark.parametrize("content", [b"", b"\0" * 41, b"4b825dc642cb6eb9a060", b"ref: refs/heads/none\n"])
def test_torn_name_hides_a_packed_one_as_it_does_for_git(lab: Lab, content: bytes) -> None:
    newest = three(lab)[0]
    name = checkpoint_ref(lab.workspace.hash, newest.sequence)
    git(lab, "pack-refs", "--all")
    path = lab.store / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)

    assert name not in read(lab, "refs/takeback")
    assert read(lab, "refs/takeback") == as_git_says(lab, "refs/takeback")


def test_files_that_are_no_names_are_passed_over(lab: Lab) -> None:
    newest = three(lab)[0]
    path = lab.store / checkpoint_ref(lab.workspace.hash, newest.sequence)
    for part in ("left.lock", ".tmp-0123", "a..b", "a~1", "a b", "ends.", "é"):
        (path.parent / part).write_bytes(path.read_bytes())

    names = read(lab, "refs/takeback")

    assert names == as_git_says(lab, "refs/takeback")
    assert f"{path.parent.relative_to(lab.store)}/é" in names


@pytest.mark.parametrize("packed", [False, True])
def test_list_starts_no_git_for_what_is_known(lab: Lab, started: list[tuple[str, ...]], packed: bool) -> None:
    known = three(lab)
    if packed:
        git(lab, "gc", "--quiet", "--prune=now")
        assert lab.checkpoints() == known
    started.clear()

    again = lab.checkpoints()

    assert again == known
    assert started == []


def test_packed_commits_are_read_by_one_process(lab: Lab, started: list[tuple[str, ...]]) -> None:
    known = three(lab)
    git(lab, "gc", "--quiet", "--prune=now")
    lab.engine = lab.open_engine()
    started.clear()

    again = lab.checkpoints()

    assert again == known
    assert [call[0] for call in started] == ["version", "cat-file"]


def test_checkpoint_of_another_process_is_seen_at_once(lab: Lab) -> None:
    known = three(lab)
    other = lab.open_engine()

    lab.edit("a.txt", "changed\n")
    taken = other.checkpoint(lab.workspace, "by another").checkpoint

    assert lab.checkpoints() == [taken, *known]


def test_dropped_checkpoint_is_gone_at_once(lab: Lab) -> None:
    known = three(lab)
    git(lab, "update-ref", "-d", checkpoint_ref(lab.workspace.hash, known[1].sequence))

    assert lab.checkpoints() == [known[0], known[2]]


def test_commit_lost_with_its_pack_is_said_although_it_was_known(lab: Lab) -> None:
    three(lab)
    git(lab, "gc", "--quiet", "--prune=now")
    assert len(lab.checkpoints()) == 3
    for path in (lab.store / "objects" / "pack").iterdir():
        path.unlink()

    assert lab.checkpoints() == []
    assert len(lab.engine.damage(lab.workspace)) == 1


def test_spoiled_commit_that_a_pack_stands_in_for_is_listed_while_it_does(lab: Lab) -> None:
    known = three(lab)
    loose = lab.store / "objects" / known[0].id[:2] / known[0].id[2:]
    content = loose.read_bytes()
    git(lab, "gc", "--quiet", "--prune=now")
    loose.parent.mkdir(exist_ok=True)
    loose.write_bytes(content[:20])
    lab.engine = lab.open_engine()
    assert lab.checkpoints() == known

    for path in (lab.store / "objects" / "pack").iterdir():
        path.unlink()

    assert lab.checkpoints() == []


def test_names_are_complete_while_git_packs_them(lab: Lab) -> None:
    three(lab)
    below = f"refs/takeback/{lab.workspace.hash}"
    names = read(lab, below)

    def pack_and_unpack() -> None:
        for _round in range(10):
            git(lab, "pack-refs", "--all")
            for name, commit in names.items():
                path = lab.store / name
                path.parent.mkdir(parents=True, exist_ok=True)
                fresh = path.with_name(".fresh")
                fresh.write_text(f"{commit}\n")
                fresh.replace(path)

    with ThreadPoolExecutor(1) as pool:
        packing = pool.submit(pack_and_unpack)
        seen = [read(lab, below)]
        while not packing.done():
            seen.append(read(lab, below))

    packing.result()
    assert len(seen) > 10
    assert all(found == names for found in seen)
