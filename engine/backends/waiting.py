"""Waiting that a stop cuts short: for the way to a place where commands run, before anything runs there."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Final, TypeVar

from engine.backends.base import StopSignal
from engine.backends.conversation import NotStarted

LOOK_S: Final = 0.2
"""How often it is looked whether what is waited for is still wanted."""

_Made = TypeVar("_Made")


def refuse_stopped(stop: StopSignal | None) -> None:
    """Raise ``NotStarted`` once a stop has come; without a signal none does."""
    if stop is not None and stop.stopped:
        raise NotStarted("it was stopped")


@contextmanager
def holding(lock: threading.Lock, stop: StopSignal | None) -> Iterator[None]:
    """Hold a lock as long as the block lasts; raises ``NotStarted`` when a stop comes before its turn does."""
    while not lock.acquire(timeout=LOOK_S):
        refuse_stopped(stop)
    try:
        refuse_stopped(stop)
        yield
    finally:
        lock.release()


def unless_stopped(make: Callable[[], _Made], stop: StopSignal) -> _Made:
    """Call what nothing can interrupt; raises ``NotStarted`` when a stop comes first.

    The call then goes on in a thread of its own, so it must be one that changes nothing but what the next finds made.
    """
    ended: SimpleQueue[tuple[_Made] | BaseException | None] = SimpleQueue()

    def call() -> None:
        try:
            ended.put((make(),))
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            ended.put(error)

    threading.Thread(target=call, name="way-elsewhere", daemon=True).start()
    with stop.listening(lambda: ended.put(None)):
        made = ended.get()
    if isinstance(made, BaseException):
        raise made
    if made is None:
        raise NotStarted("it was stopped")
    refuse_stopped(stop)
    return made[0]
