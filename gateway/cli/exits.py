"""Exit codes, and which error ends the program with which."""

import errno
import os
from enum import IntEnum

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


class Exit(IntEnum):
    """What the exit code of every command means."""

    OK = 0
    ERROR = 1
    USAGE = 2
    BUSY = 3
    PARTLY = 4
    INTERRUPTED = 130


_EXIT_CODES = """\b
Exit codes:
  0    done
  1    it could not be done; the message says why
  2    the command line or the configuration is wrong
  3    busy: another process holds the store; try again
  4    partly done; the message names what failed
  130  interrupted
"""


def ending(*examples: str) -> str:
    """The end of a help text: examples, then the exit codes; the marks keep click from joining the lines."""
    return "\b\n" + "\n".join(["Examples:", *(f"  {example}" for example in examples)]) + "\n\n" + _EXIT_CODES


def cause_of(error: BaseException) -> BaseException:
    """The error itself where tasks that ran together have wrapped it."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def sentence_of(error: BaseException) -> str:
    """What to say of an error that `code_of` knows."""
    if isinstance(error, OSError):
        where = "what there is to say could not be written" if error.filename is None else os.fsdecode(error.filename)
        return f"{where}: {error.strerror}"
    return str(error)


def code_of(error: BaseException) -> Exit | None:
    """The exit code of an error whose message is a sentence for people; ``None`` for a defect of ours."""
    from adapters.contract import ConnectionFailed
    from engine.errors import EngineError, StoreBusy
    from gateway.home import HomeUnusable
    from gateway.operation.endpoints import EndpointsUnusable
    from gateway.state.errors import StateError

    # The configuration is imported only by commands that read it; its errors can only come from there.
    if type(error).__name__ == "ConfigInvalid":
        return Exit.USAGE
    if isinstance(error, StoreBusy):
        return Exit.BUSY
    if isinstance(error, (EngineError, StateError, HomeUnusable, EndpointsUnusable, ConnectionFailed)):
        return Exit.ERROR
    # A file that cannot be used, or no room, is the machine's state; any other failed call of the system is a defect.
    is_state = isinstance(error, OSError) and (error.filename is not None or error.errno in _NO_ROOM)
    return Exit.ERROR if is_state else None
