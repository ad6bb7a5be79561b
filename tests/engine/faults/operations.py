"""The operations that are broken off at every step, each with its scene and its proof."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.engine.faults import proofs, scenes
from tests.engine.faults.scenes import Act, Picture
from tests.engine.lab import Lab

Proof = Callable[[Lab, Picture, Picture, str], None]


@dataclass(frozen=True)
class Operation:
    """What is broken off.

    ``prepare`` makes the scene, ``run`` is what is broken off. ``settle`` is what happens next, with a fresh engine:
    whatever the fault was, few different states are left after it. ``prove`` goes on from there with another one. Both
    are told the pictures before and after an undisturbed run and what the disturbed one said. The floors are the least
    number of steps at which it is killed, and of failures that it is made to meet.
    """

    prepare: Callable[[Lab], None]
    run: Act
    settle: Proof
    prove: Proof
    least_kills: int
    least_failures: int


OPERATIONS = {
    "the first checkpoint, of many files": Operation(
        scenes.fill_much, scenes.take_checkpoint, proofs.again, proofs.checkpoint, 75, 85
    ),
    "a checkpoint that drops the oldest, in a neglected store": Operation(
        scenes.neglected, scenes.take_third_checkpoint, proofs.third_again, proofs.third_checkpoint, 35, 49
    ),
    "a command": Operation(scenes.start, scenes.run_command, proofs.later_tool, proofs.taken_back, 55, 75),
    "a file written": Operation(scenes.start, scenes.write_file, proofs.later_tool, proofs.taken_back, 63, 81),
    "a restore": Operation(scenes.change_and_plan, scenes.apply_plan, proofs.finished, proofs.restore, 98, 115),
    "a restore of everything": Operation(
        scenes.change_and_plan_all, scenes.apply_plan, proofs.finished, proofs.restore_all, 73, 91
    ),
    "a restore undone": Operation(scenes.restored_and_planned, scenes.apply_plan, proofs.finished, proofs.undo, 60, 72),
    "a restore finished after a kill": Operation(
        scenes.broken_off, scenes.finish, proofs.finished_from_the_middle, proofs.restore_from_the_middle, 46, 46
    ),
    "a prune": Operation(scenes.several_turns, scenes.prune, proofs.prune_again, proofs.prune, 19, 28),
}
