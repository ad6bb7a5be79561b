"""The main job on real input: Python's own standard library is damaged, looked at, taken back, and brought back."""

import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.e2e.program import Answer, Program
from tests.e2e.scene import Scene
from tests.e2e.trees import Photograph, copy_tree, differing, photograph, touched

DAMAGE = ("$ rm -rf json", "$ sed -i s/import/import_/ os.py", "/write added/new.py\nprint('new')\n")
HAND_EDIT = "# edited by hand\n"


@dataclass
class Story:
    """One chat's way through the main job. ``say`` sends a message and gives the answer."""

    root: Path
    say: Callable[[str], Answer]
    original: Photograph = field(default_factory=dict)
    damaged: Photograph = field(default_factory=dict)
    answers: list[Answer] = field(default_factory=list)

    def damage(self) -> None:
        self.original = photograph(self.root)
        self.answers += [self.say(text) for text in DAMAGE]
        self.edit_by_hand()

    def edit_by_hand(self) -> None:
        with open(self.root / "string.py", "a") as file:
            file.write(HAND_EDIT)
        self.damaged = photograph(self.root)

    def look(self) -> None:
        self.answers += [self.say("/rollback"), self.say("/rollback diff 3")]

    def take_back(self) -> None:
        self.answers.append(self.say("/rollback 3"))

    def assert_damaged(self) -> None:
        assert {path.split("/")[0] for path in differing(self.original, self.damaged)} == {
            "json",
            "os.py",
            "added",
            "string.py",
        }

    def assert_listed(self, answer: Answer) -> None:
        assert answer.text.startswith(f"📸 Checkpoints for {self.root}:\n")
        assert [re.sub(r"  \([^()]*\)$", "", entry) for entry in answer.entries] == [
            "before write_file: added/new.py",
            "before terminal: sed -i s/import/import_/ os.py",
            "before terminal: rm -rf json",
        ]
        assert answer.entries[0].endswith("  (1 file, +1/-0)")

    def assert_previewed(self, answer: Answer) -> None:
        assert "\n/rollback 3 would do this:\n" in answer.text
        assert answer.line("keep your hand-edit:") == "string.py"
        assert answer.line("remove:") == "added/new.py"
        assert re.fullmatch(r"json/__init__\.py, .*, os\.py", answer.line("restore:"))

    def assert_preview_is_a_patch(self) -> None:
        """Plain git takes everything back with it, the hand-edit too."""
        [(name, patch)] = self.answers[4].files.items()
        assert re.fullmatch(r"rollback-[0-9a-f]{7}\.diff", name)
        subprocess.run(["git", "apply", "--reverse", "-"], cwd=self.root, input=patch.encode(), check=True)
        assert differing(self.original, photograph(self.root)) == set()

    def assert_taken_back(self, answer: Answer) -> None:
        after = photograph(self.root)
        assert differing(self.original, after) == {"string.py"}
        assert (self.root / "string.py").read_text().endswith(HAND_EDIT)
        written = {"string.py", "os.py", *(path for path in self.original if path.split("/")[0] == "json")}
        assert touched(self.original, after) <= written
        assert answer.line("✅ Restored to checkpoint ").endswith(": before terminal: rm -rf json")
        assert answer.line("↷ Kept your hand-edits:") == "string.py"
        assert answer.line("Use") == "/rollback 3 --all to restore those too."
        assert answer.line("↩") == "Undid 3 turns. /redo brings files and turns back."

    def assert_brought_back(self, answer: Answer) -> None:
        after = photograph(self.root)
        assert differing(self.damaged, after) == set()
        assert touched(self.damaged, after) <= {"os.py", "added/new.py"}
        assert "✅ Restored to checkpoint " in answer.text
        assert answer.line("↪") == "Brought back 3 turns."

    def tell(self) -> None:
        """All of it, one message after the other."""
        self.damage()
        self.assert_damaged()
        self.look()
        self.assert_listed(self.answers[3])
        self.assert_previewed(self.answers[4])
        self.take_back()
        self.assert_taken_back(self.answers[5])
        self.answers.append(self.say("/redo"))
        self.assert_brought_back(self.answers[6])


def plain(answer: Answer) -> str:
    """What was said, without what differs from run to run: ids and times."""
    return re.sub(r"\b[0-9a-f]{7,40}\b|[\d-]{10} [\d:]{5}", "…", answer.text)


@pytest.fixture
def root(scene: Scene, library: Path) -> Path:
    """A copy of the library, of thousands of files, as the project."""
    scene.project.rmdir()
    copy_tree(library, scene.project)
    return scene.project


def test_library_is_damaged_looked_at_taken_back_and_brought_back(root: Path, program: Program) -> None:
    story = Story(root, program.ask)

    story.tell()

    assert program.end() == 0
    story.assert_preview_is_a_patch()


def test_restart_between_any_two_messages_changes_nothing_of_it(scene: Scene, root: Path) -> None:
    def say_and_restart(text: str) -> Answer:
        program = scene.start()
        answer = program.ask(text)
        assert program.end() == 0
        return answer

    story = Story(root, say_and_restart)

    story.tell()

    assert [plain(answer).count("Takeback") for answer in story.answers] == [0] * len(story.answers)
    scene.start().ask("/status").line("Last turn: #3 done: /write added/new.py")


def test_two_chats_damage_and_take_back_two_workspaces_at_once(scene: Scene, library: Path, tmp_path: Path) -> None:
    roots = {"one": scene.project, "two": tmp_path / "other"}
    scene.project.rmdir()
    for path in roots.values():
        copy_tree(library, path)
    scene.configure(
        "checkpoints: {enabled: true}\ndefault_workspace: one\n"
        f"workspaces:\n  one: {{path: {roots['one']}}}\n  two: {{path: {roots['two']}}}\n"
    )
    program = scene.start("--checkpoints")
    assert str(roots["two"]) in program.ask("/workspace two", chat="two").text
    stories = {name: Story(path, lambda text, name=name: program.ask(text, chat=name)) for name, path in roots.items()}
    for story in stories.values():
        story.original = photograph(story.root)

    for texts in (DAMAGE, ("/rollback", "/rollback diff 3", "/rollback 3"), ("/redo",)):
        for text in texts:
            for name in stories:
                program.send(text, chat=name)
        for name, story in stories.items():
            story.answers += [program.answer(name) for _ in texts]
        for story in stories.values():
            if texts is DAMAGE:
                story.edit_by_hand()
                story.assert_damaged()
            elif len(story.answers) == 6:
                story.assert_listed(story.answers[3])
                story.assert_previewed(story.answers[4])
                story.assert_taken_back(story.answers[5])
            else:
                story.assert_brought_back(story.answers[6])

    assert program.end() == 0
