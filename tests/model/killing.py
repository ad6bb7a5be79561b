"""Gateways that are killed while they answer, and what the next start has to make of it.

A command that restores is carried out as if nothing had happened. A turn that had begun is cut off: what its tool
changed by then is the agent's if the ledger says so, a hand-edit otherwise, and its checkpoint can be gone back to.
"""

import secrets
from copy import copy

from engine.host.files import TEMP_PREFIX
from gateway.state.turns import TurnState
from tests.model import commands
from tests.model.acts import Act, Told, act
from tests.model.commands import Command
from tests.model.model import Checkpoint, Refused, Session, World
from tests.model.product import Nursery
from tests.model.scene import Scene, predicted, record, shortened
from tests.model.source import Capture
from tests.model.trees import Tree, look


def kill_restore(scene: Scene, nursery: Nursery, chat: str, text: str, command: Command, kill_at: int) -> None:
    """Kill a gateway in a command that restores; the next one brings it to its end."""
    _kill(scene, nursery, chat, text, kill_at)
    world, session = scene.world, scene.world.sessions[chat]
    taken = len(world.checkpoints)
    scene.observe()
    if not isinstance(predicted(command, world, session), Refused):
        _allow_two_safeties(scene, taken)
    scene.compare()


def _allow_two_safeties(scene: Scene, taken: int) -> None:
    """A safety checkpoint that was taken before nothing happened stays in the list beside the next one."""
    world = scene.world
    fresh = [item for item in scene.product.checkpoints(scene.root) if item.sequence > world.checkpoints[-1].sequence]
    if len(world.checkpoints) == taken or not fresh:
        return
    assert len(fresh) == 1, "more checkpoints than one for each attempt"
    twin = copy(world.checkpoints[-1])
    world.checkpoints[-1].sequence += 1
    world.checkpoints.insert(-1, twin)
    world.sequence += 1


def kill_turn(scene: Scene, nursery: Nursery, chat: str, what: Told, kill_at: int) -> None:
    """Kill a gateway in a turn; the next one runs it from its beginning, or says that it was cut off."""
    world, session = scene.world, scene.world.sessions[chat]
    done = act(world.tree, chat, what)
    if done is None or _reaches_hidden(world, done):
        return
    _kill(scene, nursery, chat, done.text, kill_at)
    active = scene.product.active(chat)
    cut_off = bool(active) and active[0].text == done.text and active[0].state is TurnState.INTERRUPTED
    if not cut_off or active[0].id in {turn.number for turn in session.turns}:
        commands.tell(world, chat, done)
        scene.compare()
        return
    _settle(scene, session, done, active[0].id)
    scene.compare()


def _reaches_hidden(world: World, done: Act) -> bool:
    """Whether what a tool names could be captured or not, depending on when it was killed."""
    return not set(done.named).isdisjoint(world.preview().excluded)


def _settle(scene: Scene, session: Session, done: Act, number: int) -> None:
    """Have another turn find out what the killed one left, and tell the model."""
    world = scene.world
    world_before = dict(world.tree)
    turn = world.begin_turn(session, done.text)
    turn.cut_off, turn.number = True, number
    before = world.capture(done.named) if session.guarded else None
    probe = act(world.tree, session.chat, ("write", "@-probe", f"{number}\n"))
    assert probe is not None
    scene.say(session.chat, probe.text)

    if not session.guarded:
        _sweep(scene)
    found = look(scene.root)
    found.pop(f"{session.chat}-probe")
    if f"{session.chat}-probe" in world_before:
        found[f"{session.chat}-probe"] = world_before[f"{session.chat}-probe"]
    _assert_between(world_before, done, found)
    world.tree = found
    if before is not None:
        _adopt(scene, session, done, before)
    commands.tell(world, session.chat, probe)


def _sweep(scene: Scene) -> None:
    """Remove what a killed write leaves where nothing was noted of it: with checkpoints off nobody comes back to it."""
    for path in scene.root.rglob(f"{TEMP_PREFIX}*"):
        record(f"by hand: remove the leftover {path.relative_to(scene.root)}")
        path.unlink()


def _assert_between(before: Tree, done: Act, found: Tree) -> None:
    """Each path is as it was before the tool, as after it, or a step of a script in between."""
    after = dict(before)
    done.effect(after)
    touched = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    strange = {path for path in before.keys() | found.keys() if before.get(path) != found.get(path)} - touched
    if not done.text.startswith("$ python3"):
        assert strange == set(), strange
        assert all(found.get(path) in (before.get(path), after.get(path)) for path in touched)


def _adopt(scene: Scene, session: Session, done: Act, before: Capture) -> None:
    """Take over what the product kept of the killed turn: its checkpoint, and what counts as the agent's."""
    world, turn, engine = scene.world, session.head, scene.product.gateway.engine
    assert turn is not None
    known = {item.id for item in world.checkpoints}
    for item in scene.product.checkpoints(scene.root):
        if item.id not in known and item.turn is not None and item.turn.turn == str(turn.number):
            taken = world.take(session, before, done.reason, turn)
            assert taken.sequence == item.sequence
            turn.checkpoint = taken
    if turn.checkpoint is None:
        turn.checkpoint = _linked(scene, turn.number)
    if engine.turn_diff(engine.open_workspace(str(scene.root)), str(turn.number)) is not None:
        world.note_writes(session.chat, turn, world.changes(before, world.capture(done.named)))


def _linked(scene: Scene, number: int) -> Checkpoint | None:
    """The checkpoint that the database names for a turn."""
    turn = scene.product.turn(number)
    return next((item for item in scene.world.checkpoints if item.id == turn.checkpoint_id), None)


def _kill(scene: Scene, nursery: Nursery, chat: str, text: str, kill_at: int) -> None:
    """Let a gateway of its own process take a message, and kill it at a step; then start the usual one again."""
    event_id = f"killed-{secrets.token_hex(6)}"
    scene.product.close()
    code = nursery.run(
        {
            "home": str(scene.home),
            "user_home": str(scene.base / "user"),
            "settings": scene.product.settings.model_dump(mode="json", exclude_unset=True),
            "chat": chat,
            "event_id": event_id,
            "text": text,
            "kill_at": kill_at,
            "trace": str(scene.base / "trace"),
        }
    )
    steps = (scene.base / "trace").read_text().splitlines()
    ended = f"killed at step {kill_at}: {steps[-1]}" if code else "it lived to its end"
    scene.counted["killed" if code else "not killed"] += 1
    said = [f"    {step.removeprefix('send ')}\n" for step in steps if step.startswith("send ")]
    record(f"{chat}> {shortened(text)}\n{''.join(said)}    ({ended})")
    scene.product.open()
    scene.product.deliver_again(chat, event_id, text)
