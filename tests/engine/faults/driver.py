"""Breaks one operation off at every step: ``python -m tests.engine.faults.driver OPERATION kill|fail DIRECTORY``.

Prints one JSON line: the steps, how many faults there were, how many different states they left, and what did not hold.
A process of its own, because it listens to every file operation, stands the clock still and forks.
"""

import ctypes
import json
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from tests.engine.faults import proofs
from tests.engine.faults.operations import OPERATIONS, Operation, Proof
from tests.engine.faults.points import Act, Point
from tests.engine.faults.scenes import Picture, picture
from tests.engine.faults.stage import Ended, Stage
from tests.engine.lab import Lab

Kind = Literal["kill", "fail"]

_ADOPT: Final = 36  # PR_SET_CHILD_SUBREAPER (prctl(2)): what a killed child had started becomes our child
GIT_FAULTS: Final = ("refuses", "dies", "lies")


@dataclass(frozen=True)
class Case:
    """A fault at one step; ``how`` tells the ways apart in which git fails."""

    number: int
    what: str
    how: str


def cases(points: tuple[str, ...], kind: Kind) -> Iterator[Case]:
    """Name every fault of a kind: one for each step, three where git starts and has to fail."""
    for number, what in enumerate(points, start=1):
        for how in GIT_FAULTS if kind == "fail" and what.startswith("git ") else (kind,):
            yield Case(number, what, how)


class Breaking:
    """One operation on one stage."""

    def __init__(self, operation: Operation, stage: Stage) -> None:
        self._operation = operation
        self._stage = stage
        self._settled: set[str] = set()
        self._before: Picture = {}
        self._after: Picture = {}
        self.problems: list[str] = []
        self.left: set[str] = set()

    def rehearse(self) -> Ended:
        """Run the operation undisturbed and note at each step what stands on disk."""
        stage = self._stage
        stage.run(self._operation.prepare)
        stage.keep_beginning()
        self._operation.run(stage.lab())  # in this very process, which has everything imported from now on
        stage.begin()
        self._before = picture(stage.lab())
        ended = stage.run(self._operation.run, lambda _point: stage.fingerprint())
        self._after = picture(stage.lab())
        if ended.surprise or not ended.points:
            self.problems.append(f"undisturbed: {ended}")
        return ended

    def break_off(self, case: Case) -> None:
        """Run the operation with one fault, then prove that everything holds."""
        stage = self._stage
        stage.begin()
        ended = stage.run(self._operation.run, self._fault(case), watched_git=case.how in GIT_FAULTS)
        stage.git.work()
        if ended.surprise:
            self._problem(case, ended, ended.surprise)
        if not (ended.killed if case.how == "kill" else _met(case, ended)):
            self._problem(case, ended, f"the step was not reached: {ended.points}")
        unguarded = "no checkpoint was taken" in ended.said
        left = f"{stage.fingerprint()} {unguarded}"
        if left in self.left:
            return
        self.left.add(left)
        self._go_on(case, ended, self._settle)
        settled = f"{stage.fingerprint()} {unguarded}"
        if settled not in self._settled:
            self._settled.add(settled)
            self._go_on(case, ended, self._operation.prove)
            self._go_on(case, ended, lambda lab, *_: proofs.store_is_whole(lab))

    def _settle(self, lab: Lab, before: Picture, after: Picture, said: str) -> None:
        proofs.nothing_torn(lab, before, after)
        self._operation.settle(lab, before, after, said)

    def _go_on(self, case: Case, ended: Ended, step: Proof) -> None:
        done = self._stage.run(lambda lab: step(lab, self._before, self._after, ended.said))
        if done.said or done.surprise:
            self._problem(case, ended, done.said or done.surprise)

    def _fault(self, case: Case) -> Act:
        git = self._stage.git

        def act(point: Point) -> None:
            if point.number == case.number + 1:
                git.work()
            if point.number != case.number:
                return
            match case.how:
                case "kill":
                    os.kill(os.getpid(), signal.SIGKILL)
                case "refuses":
                    git.fail()
                case "dies":
                    git.die_after(100, ".")
                case "lies":
                    git.lie()
                case _:
                    raise point.error()

        return act

    def _problem(self, case: Case, ended: Ended, what: str) -> None:
        how = "killed" if ended.killed else f"{case.how}, and said {ended.said!r}"
        self.problems.append(f"step {case.number} ({case.what}), {how}: {what}")


def _met(case: Case, ended: Ended) -> bool:
    """Whether the disturbed run came to the step that was to fail; names of temporary files differ."""
    kind = case.what.split()[0]
    return len(ended.points) >= case.number and ended.points[case.number - 1].split()[0] == kind


def main(name: str, kind: Kind, directory: str) -> None:
    """Break one operation off in every way of one kind."""
    ctypes.CDLL(None, use_errno=True).prctl(_ADOPT, 1, 0, 0, 0)
    breaking = Breaking(OPERATIONS[name], Stage(Path(directory)))
    undisturbed = breaking.rehearse()
    faults = list(cases(undisturbed.points, kind))
    done = 0
    seen = set()
    for case in faults:
        state = undisturbed.states[case.number - 1]
        # Killed before two steps between which nothing on disk changes, it leaves the same: one kill stands for both.
        if kind == "fail" or state not in seen:
            done += 1
            breaking.break_off(case)
        seen.add(state)
    found = {
        "points": undisturbed.points,
        "faults": len(faults),
        "done": done,
        "left": len(breaking.left),
        "problems": breaking.problems,
    }
    sys.stdout.write(f"{json.dumps(found)}\n")


if __name__ == "__main__":
    main(sys.argv[1], "kill" if sys.argv[2] == "kill" else "fail", sys.argv[3])
