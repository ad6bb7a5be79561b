"""Two chats and a person at work in one workspace, in any order; after every step all is as the model predicts.

The gateway is the real one with its database, engine and git. A failure prints what was said in the chats.
"""

from anyio.from_thread import BlockingPortal
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.model.acts import CHATS, Told, gestures, paths, plain_paths, told
from tests.model.commands import redo, roll_back, undo
from tests.model.killing import kill_restore, kill_turn
from tests.model.model import World
from tests.model.product import Nursery
from tests.model.scene import Scene
from tests.model.source import IGNORABLE
from tests.model.trees import Gesture, quoted

chats = st.sampled_from(CHATS)
numbers = st.sampled_from((1, 1, 1, 2, 2, 3, 4))
moments = st.integers(1, 90)
limits = st.sampled_from((20, 20, 5))
rare = st.sampled_from(("ignore", "commit", "nest"))

KILLED = {
    "/undo": undo,
    "/redo": redo,
    "/rollback 1": roll_back(1),
    "/rollback 2": roll_back(2),
    "/rollback 2 --all": roll_back(2, everything=True),
}


def tasks(where: st.SearchStrategy[str] = paths) -> st.SearchStrategy[list[Told]]:
    """A few things that an agent is told, one after the other."""
    return st.lists(told(where), min_size=1, max_size=3)


class Machine(RuleBasedStateMachine):
    """The rules. ``portal`` runs the gateway's event loop, ``nursery`` the gateways that are killed."""

    portal: BlockingPortal
    nursery: Nursery
    scene: Scene

    @initialize(limit=limits)
    def begin(self, limit: int) -> None:
        self.scene = Scene(self.portal, limit=limit)
        self.scene.open()

    @property
    def world(self) -> World:
        return self.scene.world

    def teardown(self) -> None:
        if hasattr(self, "scene"):
            self.scene.close()

    # --- the agent, which does more than anybody else

    @rule(chat=chats, tasks=tasks())
    def agent(self, chat: str, tasks: list[Told]) -> None:
        for what in tasks:
            self.scene.tell(chat, *what)

    @rule(chat=chats, tasks=tasks(plain_paths))
    def agent_on_plain_files(self, chat: str, tasks: list[Told]) -> None:
        for what in tasks:
            self.scene.tell(chat, *what)

    @rule(chat=chats, on=chats, what=told(plain_paths))
    def agent_on_anybodys_files(self, chat: str, on: str, what: Told) -> None:
        self.scene.tell(chat, *what, on=on)

    # --- the person in the workspace

    @rule(chat=chats, performed=st.lists(gestures(), min_size=1, max_size=3))
    def hand(self, chat: str, performed: list[Gesture]) -> None:
        self.scene.hand(chat, *performed)

    @rule(chat=chats, performed=st.lists(gestures(plain_paths), min_size=1, max_size=2))
    def hand_on_plain_files(self, chat: str, performed: list[Gesture]) -> None:
        self.scene.hand(chat, *performed)

    @rule(lines=st.lists(st.sampled_from(IGNORABLE), unique=True), path=st.sampled_from(("a/d", "b", "n")), what=rare)
    def rarely(self, what: str, lines: list[str], path: str) -> None:
        """The person says what is no source, commits everything, or has a nested repository come or go."""
        nested = [found for found in self.world.tree if found.endswith("/.git")]
        if what == "ignore":
            self.scene.hand("a", ("write", ".gitignore", "".join(f"{line}\n" for line in lines)))
        elif nested:
            self.scene.hand("a", *(("remove", found) for found in nested))
        elif what == "nest":
            self.scene.hand("a", ("nest", path))
        else:
            self.scene.commit()

    # --- the person in a chat

    @rule(chat=chats, number=st.one_of(st.none(), numbers))
    def look(self, chat: str, number: int | None) -> None:
        if number is None:
            self.scene.listing(chat)
        else:
            self.scene.preview(chat, number)

    @rule(chat=chats, number=numbers, what=st.sampled_from(("", "", " --all", " PATH")), of=chats, path=paths)
    def rollback(self, chat: str, number: int, what: str, of: str, path: str) -> None:
        if what == " PATH":
            path = path.replace("@", of)
            self.scene.restore(chat, f"/rollback {number} {quoted(path)}", roll_back(number, path=path))
        else:
            self.scene.restore(chat, f"/rollback {number}{what}", roll_back(number, everything=bool(what)))

    @rule(chat=chats)
    def undo(self, chat: str) -> None:
        self.scene.restore(chat, "/undo", undo)

    @rule(chat=chats, word=st.sampled_from(("/redo", "/rollback undo")))
    def redo(self, chat: str, word: str) -> None:
        self.scene.restore(chat, word, redo)

    @rule(chat=chats, what=st.sampled_from(("new", "on", "off", "on", "restart")))
    def settle_down(self, chat: str, what: str) -> None:
        """The next session begins, checkpoints are switched, or the gateway starts anew."""
        if what == "new":
            self.scene.new(chat)
        elif what == "restart":
            self.scene.restart()
        else:
            self.scene.switch(chat, on=what == "on")

    # --- the end of a process

    @rule(chat=chats, what=told(plain_paths), kill_at=moments)
    def killed_in_a_turn(self, chat: str, what: Told, kill_at: int) -> None:
        kill_turn(self.scene, self.nursery, chat, what, kill_at)

    @rule(chat=chats, text=st.sampled_from([*KILLED]), kill_at=moments)
    def killed_in_a_restore(self, chat: str, text: str, kill_at: int) -> None:
        kill_restore(self.scene, self.nursery, chat, text, KILLED[text], kill_at)
