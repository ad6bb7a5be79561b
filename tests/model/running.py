"""Running the state machine: how many examples, of how many steps, from which seed."""

import time
from collections import Counter
from dataclasses import dataclass, field

from anyio.from_thread import BlockingPortal
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.machine import Machine
from tests.model.product import Nursery


@dataclass(slots=True)
class Run:
    """What a run did; ``gestures`` counts what was done, by its word."""

    examples: int = 0
    steps: int = 0
    seconds: float = 0.0
    gestures: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        words = ", ".join(f"{word} {count}" for word, count in self.gestures.most_common())
        return f"{self.examples} examples, {self.steps} steps, {self.seconds:.0f} s: {words}"


def run(
    portal: BlockingPortal,
    nursery: Nursery,
    *,
    examples: int,
    steps: int,
    start: int | None = None,
    done: Run | None = None,
) -> Run:
    """Run the machine; without a seed to start from every run is the same, and ends with the first thing it finds.

    Raises whatever an example found, with its steps as notes; from a seed, in its shortest form. What was done
    is added to ``done``.
    """
    done = Run() if done is None else done

    class Counted(Machine):
        """The machine, with what it did counted."""

        def check_invariants(self, *arguments: object, **more: object) -> None:
            done.steps += 1
            super().check_invariants(*arguments, **more)

        def teardown(self) -> None:
            done.examples += 1
            if hasattr(self, "scene"):
                done.gestures.update(self.scene.counted)
            super().teardown()

    Counted.portal, Counted.nursery = portal, nursery
    machine = Counted if start is None else seed(start)(Counted)
    began = time.monotonic()
    try:
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=examples,
                stateful_step_count=steps,
                derandomize=start is None,
                deadline=None,
                database=None,
                print_blob=False,
                phases=[Phase.generate, *([] if start is None else [Phase.shrink])],
                suppress_health_check=[*HealthCheck],
            ),
        )
    finally:
        done.seconds += time.monotonic() - began
    return done
