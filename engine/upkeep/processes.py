"""Whether a process that left a note behind still lives; in doubt it does."""

import os


def is_alive(pid: int, program: str | None = None) -> bool:
    """Whether there is a process of that number, running ``program`` if one is named.

    A process that has ended and that nobody has waited for (a zombie) is not alive. Only Linux can tell that, and
    which program it runs; elsewhere the number alone has to do.
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    except OverflowError:
        return False
    return _runs(pid, program)


def _runs(pid: int, program: str | None) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            name, _end, rest = stream.read(4096).partition(b"(")[2].rpartition(b")")
    except OSError:
        return True
    if rest.split()[:1] in ([b"Z"], [b"X"]):
        return False
    return program is None or name.decode("utf-8", "replace") == program
