"""What the system refuses, said by the path it is about: the number of an error is nothing for people."""

import os


def refusal(error: OSError, otherwise: str) -> str:
    """Return ``PATH: reason``; the path is ``otherwise`` where the error names none, as that of a full disk."""
    path = otherwise if error.filename is None else os.fsdecode(error.filename)
    return f"{path}: {error.strerror or error}"
