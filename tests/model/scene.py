"""One machine with the real product on it and the model beside it, and the gestures that change both.

After every gesture the workspace, the list of checkpoints and the conversations have to be as the model predicts.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

from anyio.from_thread import BlockingPortal
from hypothesis import currently_in_test_context, note

from engine.model import CheckpointKind, PathNote
from gateway.render import files_first, name, names
from tests.e2e.homes import Holdings, assert_same, holdings
from tests.gateway.commands.kit import Answered, settings_for
from tests.model import commands
from tests.model.acts import CHATS, Told, act, filled
from tests.model.commands import OFF, Command
from tests.model.model import Outcome, Refused, Restored, Session, World
from tests.model.product import Product
from tests.model.restoring import Fate
from tests.model.trees import Gesture, Tree, look, perform, perform_really

_LISTED = re.compile(r"^ *\d+\. ([0-9a-f]{7})  ", re.MULTILINE)
_NEVER_SAID = ("no checkpoint was taken", "could not be noted", "Could not be restored", "Something went wrong")
_REASON_COMPARED = 100


class Scene:
    """A workspace with a few files, beside something that is nobody's business, and two chats that work in it."""

    def __init__(self, portal: BlockingPortal, *, limit: int = 20) -> None:
        self.base = Path(tempfile.mkdtemp(prefix="takeback-model-"))
        self.root = self.base / "app"
        self.home = self.base / "takeback"
        self.outside = self.base / "outside"
        for directory in (self.outside, self.root, *(self.root / chat for chat in CHATS)):
            directory.mkdir()
        for path in (self.outside / "kept", self.root / "notes.md", *(self.root / chat / "x" for chat in CHATS)):
            path.write_text("one\n")
        self.beyond = look(self.outside)
        self.world = World(look(self.root), CHATS, limit)
        settings = settings_for(self.root, limits={"max_snapshots": limit})
        self.product = Product(portal, self.home, settings)
        self.counted: Counter[str] = Counter()

    def open(self) -> None:
        """Start the gateway, and let each chat say a word, which begins its session."""
        self.product.open()
        for chat in CHATS:
            self.product.say(chat, "/status")

    def close(self) -> None:
        """Stop the gateway and leave nothing."""
        self.product.close()
        shutil.rmtree(self.base)

    # --- what the agent and the person do

    def tell(self, chat: str, *what: object, on: str = "") -> None:
        """Tell the agent of a chat to do something, with its own files or those of another."""
        told: Told = what  # type: ignore[assignment]
        done = act(self.world.tree, on or chat, told)
        if done is None:
            return
        said = self.say(chat, done.text)
        commands.tell(self.world, chat, done)
        self.compare(said)

    def hand(self, chat: str, *performed: Gesture) -> None:
        """Change files by hand, those of a chat's agent."""
        for gesture in performed:
            self._by_hand(filled(gesture, chat))
        self.compare()

    def _by_hand(self, gesture: Gesture) -> None:
        self.counted["by hand"] += 1
        record(f"by hand: {gesture}")
        perform(self.world.tree, gesture)
        perform_really(self.root, gesture)

    def commit(self) -> None:
        """Commit everything to a repository in the workspace; nothing but this ever changes it."""
        record("by hand: git commit")
        if ".git" not in self.world.tree:
            self._git("init", "-q")
        self._git("add", "-A")
        self._git("commit", "-q", "--allow-empty", "-m", "work")
        self.world.tree |= {path: node for path, node in look(self.root).items() if f"{path}/".startswith(".git/")}
        self.world.tracked = frozenset(path for path in self._git("ls-files", "-z").split("\0") if path)
        self.compare()

    def _git(self, *arguments: str) -> str:
        person = ["-c", "user.name=P", "-c", "user.email=p@localhost", "-c", "init.defaultBranch=main"]
        done = subprocess.run(
            ["git", *person, "-c", "gc.auto=0", *arguments],
            cwd=self.root,
            check=True,
            capture_output=True,
            env={"PATH": os.environ["PATH"], "HOME": str(self.base), "GIT_CONFIG_NOSYSTEM": "1"},
        )
        return os.fsdecode(done.stdout)

    # --- what the person says

    def listing(self, chat: str) -> None:
        """Show the list; numbers mean it from now on."""
        said = self.say(chat, "/rollback")
        if self.world.sessions[chat].guarded:
            listed = [item.id[:7] for item in reversed(self.world.checkpoints)]
            assert_same_value(listed, _LISTED.findall(said.text), "list")
            self.world.shown[chat] = self.world.checkpoints[::-1]
        else:
            assert OFF in said.text
        self.compare(said)

    def preview(self, chat: str, number: int) -> None:
        """Show what a restore would do, which is what is predicted of it, and does nothing."""
        before = self._keep()
        said = self.say(chat, f"/rollback diff {number}")
        session = self.world.sessions[chat]
        self.world.outcome = None
        planned = predicted(commands.preview(number), self.world, session)
        if isinstance(planned, Refused):
            _assert_refused(said, planned)
        elif not planned.shared:
            _assert_named(said, planned, ("restore", "remove", "keep your hand-edit"))
        # A preview captures the workspace, which is kept as what the next capture builds on.
        self._assert_kept(before, but=("refs",))
        self.compare(said)

    def restore(self, chat: str, text: str, command: Command) -> None:
        """Send a command that restores, and hold what it does and says against what is predicted."""
        session, before = self.world.sessions[chat], self._keep()
        active = session.active
        said = self.say(chat, text)
        self.observe()
        restored = predicted(command, self.world, session)
        if isinstance(restored, Refused):
            _assert_refused(said, restored)
            self._assert_kept(before)
        else:
            _assert_named(said, restored, ("Restored", "Removed", "Kept your hand-edits"))
            undone = len([turn for turn in active if turn not in session.active])
            assert ("↩ Undid" in said.text) == bool(undone)
            assert not undone or f"↩ Undid {undone} turn" in said.text
        self.compare(said)

    def new(self, chat: str) -> None:
        """Begin the next session."""
        said = self.say(chat, "/new")
        self.world.begin_session(chat)
        self.compare(said)

    def switch(self, chat: str, *, on: bool) -> None:
        """Turn checkpoints on or off for a session."""
        said = self.say(chat, f"/checkpoints {'on' if on else 'off'}")
        session = self.world.sessions[chat]
        if on and not session.guarded:
            session.guarded = True
            self.world.begin_tools(session)
        session.guarded = on
        self.compare(said)

    def restart(self) -> None:
        """Stop the gateway in order and start it again."""
        self.counted["restart"] += 1
        record("restart")
        self.product.close()
        self.product.open()
        self.compare()

    def say(self, chat: str, text: str) -> Answered:
        """Send a message, and write down what was said."""
        said = self.product.say(chat, text)
        self.counted[text.split(maxsplit=1)[0]] += 1
        record(f"{chat}> {shortened(text)}\n{indented(said.text)}")
        return said

    def observe(self) -> None:
        """Let the model see what became of the paths that may go one way or another."""
        taken = any(item.sequence > self.world.sequence for item in self.product.checkpoints(self.root))
        self.world.outcome = Outcome(look(self.root), taken)

    # --- what has to hold

    def compare(self, said: Answered | None = None) -> None:
        """The workspace, the list and the conversations are as predicted, and nothing went wrong unseen."""
        if said is not None:
            assert [words for words in _NEVER_SAID if words in said.text] == []
        assert_same_tree(self.world.tree, look(self.root))
        assert_same_tree(self.beyond, look(self.outside))
        self._match_checkpoints()
        for chat, session in self.world.sessions.items():
            self._match_turns(chat, session)

    def _match_turns(self, chat: str, session: Session) -> None:
        known = self.product.active(chat)
        chain = [shortened(turn.text) for turn in session.active]
        assert_same_value(chain, [shortened(turn.text) for turn in known], f"turns of {chat}")
        for turn, found in zip(session.active, known, strict=True):
            assert turn.number in {0, found.id}
            turn.number = found.id

    def _match_checkpoints(self) -> None:
        """The list is what it was, with what was taken since, without the oldest beyond the limit."""
        world = self.world
        real = {item.sequence: item for item in self.product.checkpoints(self.root)}
        listed = {item.sequence: item for item in world.checkpoints}
        unexpected = [real[number].reason for number in real.keys() - listed.keys()]
        assert_same_value([], unexpected, "checkpoints nobody expected")
        dropped = listed.keys() - real.keys()
        assert_same_value(min(len(listed), world.limit), len(real), "number of checkpoints")
        assert not dropped or max(listed) not in dropped, "the newest was dropped"
        world.checkpoints = [item for item in world.checkpoints if item.sequence not in dropped]
        for item in world.checkpoints:
            found = real[item.sequence]
            assert item.id in {"", found.id}, "an id changed"
            item.id = found.id
            reason = item.reason[:_REASON_COMPARED]
            assert_same_value(reason, found.reason[: len(reason)], "reason")
            assert (found.kind is CheckpointKind.SAFETY) == item.safety

    def _keep(self) -> tuple[Tree, Holdings]:
        return look(self.root), holdings(self.home)

    def _assert_kept(self, before: tuple[Tree, Holdings], *, but: tuple[str, ...] = ()) -> None:
        """Nothing at all was changed."""
        after = self._keep()
        assert_same_tree(before[0], after[0])
        assert_same(*({name: kept for name, kept in side[1].items() if name not in but} for side in (before, after)))


def predicted(command: Command, world: World, session: Session) -> Restored | Refused:
    """What a command is predicted to do, or why it is refused."""
    try:
        return command(world, session)
    except Refused as refusal:
        return refusal


def _assert_refused(said: Answered, refusal: Refused) -> None:
    assert str(refusal) in said.text, f"{refusal} was predicted"


def _assert_named(said: Answered, restored: Restored, labels: tuple[str, str, str]) -> None:
    """Every path that changes or is kept is named as such."""
    for label, fate in zip(labels, (Fate.RESTORE, Fate.DELETE, Fate.KEEP), strict=True):
        paths = restored.paths(fate)
        found = [line.split(f"{label}: ", 1)[1] for line in said.lines if line.lstrip(" ↷").startswith(f"{label}: ")]
        if restored.shared:
            _assert_mentioned(restored, "".join(found), paths)
        else:
            expected = names(files_first(PathNote(path) for path in paths))
            assert_same_value([expected] if expected else [], found, label)
    everywhere = "".join(said.lines)
    _assert_mentioned(restored, everywhere, [path for path, item in restored.plan.items() if item.shared])


def _assert_mentioned(restored: Restored, words: str, paths: list[str]) -> None:
    """Each of these paths is named, directories with something in them and what is only counted left out."""
    lowest = files_first(PathNote(path) for path in restored.plan)
    expected = [name(note.path) for note in lowest if note.path in paths]
    assert "(+" in words or all(path in words for path in expected), f"{expected} not named in {words!r}"


def assert_same_tree(predicted: Tree, found: Tree) -> None:
    """Say which paths are not as predicted."""
    paths = sorted(predicted.keys() | found.keys())
    wrong = {path: (predicted.get(path), found.get(path)) for path in paths if predicted.get(path) != found.get(path)}
    assert wrong == {}, f"predicted and found: {wrong}"


def assert_same_value(predicted: object, found: object, what: str) -> None:
    """Say both values of what is not as predicted, also where no test runner looks into assertions."""
    assert found == predicted, f"{what}: predicted {predicted!a}, found {found!a}"


def record(line: str) -> None:
    """Write down what was done, for the report of a failure."""
    note(line) if currently_in_test_context() else print(line)  # noqa: T201 - what pytest shows of a failed test


def shortened(text: str) -> str:
    """Return a message, without the text of a script, which is long."""
    if "<<'EOF'" not in text:
        return repr(text)
    calls = [line for line in text.splitlines() if line.startswith("perform(")]
    return f"$ python3 - <<'EOF': {'; '.join(calls)}"


def indented(text: str) -> str:
    """Return an answer so that it can be told from a message."""
    return "".join(f"    {line}\n" for line in text.splitlines()).rstrip("\n")
