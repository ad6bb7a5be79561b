"""Asking a running command to end."""

import threading

from engine.backends.base import StopSignal


def test_a_listener_is_called_once_however_often_one_asks() -> None:
    signal, calls = StopSignal(), []

    with signal.listening(lambda: calls.append(1)):
        assert not signal.stopped
        signal.stop()
        signal.stop()

    assert signal.stopped
    assert calls == [1]


def test_a_listener_that_comes_late_is_called_at_once() -> None:
    signal, calls = StopSignal(), []
    signal.stop()

    with signal.listening(lambda: calls.append(1)):
        assert calls == [1]
        signal.stop()

    assert calls == [1]


def test_a_listener_that_left_is_not_called() -> None:
    signal, calls = StopSignal(), []

    with signal.listening(lambda: calls.append(1)):
        pass
    signal.stop()

    assert calls == []


def test_every_listener_hears_a_stop_that_races_with_its_coming() -> None:
    for _ in range(200):
        signal, heard = StopSignal(), threading.Event()
        stopper = threading.Thread(target=signal.stop)
        stopper.start()
        with signal.listening(heard.set):
            stopper.join()
            assert heard.is_set()
