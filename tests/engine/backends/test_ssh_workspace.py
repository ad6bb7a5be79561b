"""A workspace whose commands run behind ssh is the host's: checkpoints, ledger and restore hold as for local ones."""

from dataclasses import replace
from pathlib import Path

import pytest

from engine.model import BackendChoice, ToolCall
from tests.engine.lab import CHAT, Lab, paths, snapshot
from tests.remote_host import RemoteHost

MAKES = {
    "a script": "python3 - <<'EOF'\nopen('app.py', 'a').write('more\\n')\nopen('new.py', 'w').write('new\\n')\nEOF",
    "a build": "for name in app.py a.out b.out; do echo rebuilt > $name; done",
    "a deletion": "rm -rf sub && mv a.out b.out",
}


class FarLab(Lab):
    """The agent's commands run behind ssh, where the workspace is seen under another path."""

    host: RemoteHost

    def call(self, chat: str = CHAT) -> ToolCall:
        options = self.host.options(path=str(self.home / "seen-there"))
        return replace(super().call(chat), backend=BackendChoice("ssh", options))


@pytest.fixture
def lab(tmp_path: Path, remote_host: RemoteHost) -> FarLab:
    return make(tmp_path, remote_host)


def make(base: Path, host: RemoteHost, **settings: object) -> FarLab:
    lab = FarLab(base, **settings)
    lab.host = host
    (lab.home / "seen-there").symlink_to(lab.root)
    for path in ("app.py", "a.out", "sub/deep.txt"):
        lab.edit(path, "mine\n")
    return lab


@pytest.mark.parametrize("what", MAKES)
def test_what_was_made_there_is_taken_back_without_asking_for_everything(lab: FarLab, what: str) -> None:
    before = snapshot(lab.root)

    done = lab.run(MAKES[what])
    changed = snapshot(lab.root) != before
    report = lab.rollback(1)
    lab.engine.close()

    assert done.ok, done.text
    assert done.checkpoint is not None
    assert changed
    assert report.kept == ()
    assert snapshot(lab.root) == before


def test_a_persons_edit_between_two_commands_of_a_turn_stays_the_persons(lab: FarLab) -> None:
    lab.run("echo agent > app.py")
    lab.edit("a.out", "edited\n")
    lab.run("echo more >> app.py; touch made", new_turn=False)

    report = lab.rollback(1)
    lab.engine.close()

    assert paths(report.kept) == ["a.out"]
    assert (lab.read("app.py"), lab.read("a.out"), lab.exists("made")) == ("mine\n", "edited\n", False)


def test_a_git_that_hangs_is_said_once_and_commands_run_all_the_same(tmp_path: Path, remote_host: RemoteHost) -> None:
    git = tmp_path / "git"
    git.write_text("#!/bin/sh\nexec sleep 60\n")
    git.chmod(0o755)
    lab = make(tmp_path, remote_host, git=str(git), git_timeout_s=0.5)

    first = lab.run("echo one > app.py")
    second = lab.run("echo two > app.py")
    lab.engine.close()

    assert (first.ok, second.ok, lab.read("app.py")) == (True, True, "two\n")
    assert "ran out of time and was stopped" in " ".join(first.notes)
    assert second.notes == ()


def test_what_is_only_read_there_takes_no_checkpoint(lab: FarLab) -> None:
    said = lab.run("cat app.py")
    lab.engine.close()

    assert (said.text, said.checkpoint, lab.checkpoints()) == ("mine\n", None, [])
