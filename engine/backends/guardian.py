"""Ends a command when the program that runs it is gone: killed, crashed, or at its end with a thread left behind.

Nothing in a dead program can do that, and a command that runs on would write into a workspace that people believe to
be quiet. So each command has a small process beside it that waits for the end of a pipe which only the program holds
open; the system closes it with the program, whatever ended that.
"""

import os
import subprocess
from types import TracebackType
from typing import Final, Self

# POSIX sh, so that it is there everywhere and quick to start. A line never comes: read returns when the pipe ends.
_SCRIPT: Final = """\
read -r _
for signal in TERM KILL; do
    kill -s $signal -- "-$1" 2>/dev/null || exit 0
    kill -s CONT -- "-$1" 2>/dev/null
    sleep 2
done"""


class Guardian:
    """Guards one process group as long as the block lasts; it reaches no process that left the group."""

    def __init__(self, group: int) -> None:
        waiting, self._held = os.pipe()
        try:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT, "guardian", str(group)],
                stdin=waiting,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"PATH": os.defpath},
                start_new_session=True,
            )
        except BaseException:
            os.close(self._held)
            raise
        finally:
            os.close(waiting)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Ended before the pipe is closed, which would be its sign to act.
        self._process.kill()
        self._process.wait()
        os.close(self._held)
