"""Checkpoint, command, restore and redo in a hostile workspace: ``python -m tests.engine.faults.hostile BASE``.

The test builds the workspace, so that whoever watches this process sees nothing but the engine, the command, and the
swaps that happen in the middle of a restore.
"""

import os
import sys
from pathlib import Path

from tests.engine.lab import Lab

COMMAND = (
    "echo two > swap/inner/file; ln -f ../../outside/linked hard; rm removed; "
    "mv README readme.tmp; mv readme.tmp Readme; "
    "echo two > plain; chmod 600 mode; rm -r becomes-link; ln -s ../../outside becomes-link; "
    "rm pipe; echo no pipe > pipe; "
    f"printf two > {'deep/' * 200}file"
)


def main(base: str) -> None:
    """Do all of it; nothing here asserts, the test looks at what is left and at what was called."""
    lab = Lab(Path(base))
    swap, aside, outside = lab.root / "swap", lab.root / "aside", lab.home.parent / "outside"
    swapping = False

    def fault(_operation: str, path: str) -> None:
        nonlocal swapping
        if swapping and path.startswith("swap/") and not swap.is_symlink():
            swap.rename(aside)
            swap.symlink_to(outside)

    lab.settings = {"file_fault": fault}
    lab.engine = lab.open_engine()
    assert lab.engine.checkpoint(lab.workspace, "hostile").created
    result = lab.run(COMMAND)
    assert result.ok, result
    selection = [":(exclude)nested", ":(exclude)odd0"]
    swapping = True
    back = lab.engine.apply_restore(
        lab.engine.plan_restore(lab.workspace, lab.checkpoints()[-1].id, selection=selection, everything=True)
    )
    swapping = False
    swap.unlink()
    aside.rename(swap)
    assert back.safety is not None
    for target in (back.safety.id, lab.checkpoints()[-1].id):
        plan = lab.engine.plan_restore(lab.workspace, target, selection=selection, everything=True)
        report = lab.engine.apply_restore(plan)
        sys.stdout.write(f"{sorted((note.path, note.why) for note in report.failed)}\n")
    sys.stdout.write(f"{sorted((note.path, note.why) for note in back.failed)}\n")


if __name__ == "__main__":
    os.umask(0o022)
    main(sys.argv[1])
