"""SIGKILL at counted moments: the next start finishes or undoes the work, says so, and nothing is torn."""

import os
from pathlib import Path

import pytest

from tests.e2e.program import Program
from tests.e2e.scene import Scene
from tests.e2e.trees import Photograph, differing
from tests.e2e.watching import watching

FILES = 36
SIZE_BYTES = 200_000


def prepare(scene: Scene, program: Program) -> tuple[Photograph, Photograph]:
    """Dozens of files, some changed, some deleted, some new; returns the trees before and after the agent."""
    for number in range(FILES):
        scene.edit(f"data/{number:02}", bytes([number]) + os.urandom(16) * (SIZE_BYTES // 16))
    before = scene.tree()
    program.ask(
        "$ cd data; for f in 0* 1*; do head -c 200000 /dev/urandom > $f; done; rm 2*; "
        "for n in 1 2 3 4 5 6; do echo new > new$n; done"
    )
    program.ask("/rollback")
    return before, scene.tree()


def leftovers(scene: Scene) -> list[str]:
    """Temporary files that an interrupted write left in the project."""
    return [path for path in scene.tree() if ".takeback-tmp" in path]


@pytest.mark.parametrize("moment", ["plan", "1", "3", "8", "15", "25", "40", "55", "70", "ledger"])
def test_rollback_killed_at_any_moment_is_finished_or_never_was(scene: Scene, program: Program, moment: str) -> None:
    before, after = prepare(scene, program)
    store = scene.home / "checkpoints" / "store"
    project, journal, ledgers = scene.project / "data", store / "journal", store / "ledgers"

    with watching({"plan": journal, "ledger": ledgers}.get(moment, project)) as watch:
        program.send("/rollback 1")
        watch.wait(int(moment) if moment.isdecimal() else 1, ".jsonl" if moment == "ledger" else "")
        program.kill()
    assert_nothing_torn(scene, before, after)
    again = scene.start()
    wait_until_settled(again)

    assert differing(before, scene.tree()) == set()
    assert leftovers(scene) == []
    assert again.ask("/redo").line("↪") == "Brought back 1 turn."
    assert differing(after, scene.tree()) == set()
    assert again.end() == 0


def assert_nothing_torn(scene: Scene, before: Photograph, after: Photograph) -> None:
    """Each path is as it was or as it is to be; never anything between."""
    for path, seen in scene.tree().items():
        if ".takeback-tmp" not in path:
            contents = {side[path].content for side in (before, after) if path in side}
            assert seen.content in contents, path


def wait_until_settled(program: Program) -> None:
    """Wait until the chat is told: that the restore is finished, or, where it had not begun, that it is done."""
    while not any("✅ Restored to checkpoint" in said.get("text", "") for said in program.heard):
        program.hear()


@pytest.mark.parametrize("moment", [1, 2, 4, 7, 11, 16, 22, 29, 37, 46])
def test_command_killed_with_the_program_is_said_and_taken_back(scene: Scene, program: Program, moment: int) -> None:
    for number in range(20):
        scene.edit(f"data/{number:02}", f"one {number}\n")
    before = scene.tree()
    program.ask("$ true")

    with watching(scene.project / "data") as watch:
        program.send("$ cd data; i=0; while :; do for f in *; do i=$((i + 1)); echo $i > $f; done; echo > new$i; done")
        watch.wait(moment)
        program.kill()
    again = scene.start()
    status = again.ask("/status")

    assert "⏸ Takeback was ended during this turn" in status.text
    assert status.line("Last turn:").startswith("#2 interrupted")
    assert [line for pid, line in scene.living().items() if pid != again.process.pid and "while :" in line] == []
    assert again.ask("/rollback").ids
    again.ask("/rollback 1 --all")
    assert differing(before, scene.tree()) == set()
    assert again.end() == 0


def test_program_killed_between_two_messages_has_lost_nothing(scene: Scene) -> None:
    scene.edit("a.py", "one\n")
    said = []
    for text in ("/write a.py\ntwo\n", "$ rm a.py", "/rollback", "/rollback 2", "/redo", "/undo", "/status"):
        program = scene.start()
        said.append(program.ask(text))
        program.kill()

    assert scene.read("a.py") == "two\n"
    assert said[3].line("↩") == "Undid 2 turns. /redo brings files and turns back."
    assert said[4].line("↪") == "Brought back 2 turns."
    assert said[6].line("Last turn:") == "#1 done: /write a.py two"


def test_killed_again_while_it_finishes_it_still_finishes(scene: Scene, program: Program) -> None:
    before, after = prepare(scene, program)
    project: Path = scene.project / "data"
    with watching(project) as watch:
        program.send("/rollback 1")
        watch.wait(5)
        program.kill()
    for _ in range(2):
        with watching(project) as watch:
            resuming = scene.start()
            watch.wait(5)
            resuming.kill()
        assert_nothing_torn(scene, before, after)

    again = scene.start()
    wait_until_settled(again)

    assert differing(before, scene.tree()) == set()
    assert leftovers(scene) == []
