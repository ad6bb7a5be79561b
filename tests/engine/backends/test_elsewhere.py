"""What holds of a command wherever it runs that is not here: on a host behind ssh, in a container."""

from collections.abc import Iterator

import pytest

from tests.engine.backends.conftest import Elsewhere


@pytest.fixture(scope="module", params=["ssh", "docker", "apptainer"])
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Elsewhere]:
    """A place that all tests of this file use one after the other; starting a container for each would take long."""
    machine = request.getfixturevalue(
        {"ssh": "remote_host", "docker": "podman", "apptainer": "apptainer"}[request.param]
    )
    place = Elsewhere(tmp_path_factory.mktemp(request.param), request.param, machine.options())
    yield place
    place.backend.close()


@pytest.fixture
def run(shared: Elsewhere) -> Elsewhere:
    shared.begin()
    return shared


def test_output_and_errors_come_together_in_order_and_while_it_runs(run: Elsewhere) -> None:
    run.stop_at = b"two"

    result = run("echo one; echo two >&2; sleep 60; echo three")

    assert (result.output, result.stopped) == (b"one\ntwo\n", True)
    assert b"".join(run.heard) == result.output
    assert result.duration_s < 30


def test_an_exit_code_is_the_commands_own(run: Elsewhere) -> None:
    results = [run(f"exit {code}") for code in (0, 3, 137, 255)]

    assert [(result.exit_code, result.signal, result.lost) for result in results] == [
        (code, None, "") for code in (0, 3, 137, 255)
    ]


def test_a_signal_is_told_from_a_code(run: Elsewhere) -> None:
    result = run("kill -9 $$")

    assert (result.exit_code, result.signal) == (None, 9)


def test_it_starts_in_the_workspace_with_no_input_and_nothing_of_our_environment_but_the_language(
    run: Elsewhere,
) -> None:
    result = run('pwd; cat; echo "$SECRET|$LANG|$HOME"')

    assert result.output.decode().splitlines()[0] == str(run.workspace)
    _, language, home = result.output.decode().splitlines()[1].split("|")
    assert (language, home != run.env["HOME"], b"hidden" in result.output) == ("C.UTF-8", True, False)


def test_stop_ends_the_whole_group_and_what_left_it(run: Elsewhere) -> None:
    run.stop_at = b"ready"

    result = run("sleep 4211 & setsid sleep 4212 & (trap '' TERM; sleep 4213; sleep 4214) & echo ready; wait")

    assert (result.stopped, result.left_running) == (True, False)
    assert result.duration_s < 30
    run.begin()
    assert run("ps 2>/dev/null | grep '[s]leep 421'").exit_code == 1


def test_a_time_limit_ends_also_what_ignores_the_first_signal(run: Elsewhere) -> None:
    result = run("trap '' TERM; echo on; while :; do sleep 0.1; done", timeout_s=1)

    assert (result.timed_out, result.signal, result.left_running) == (True, 9, False)
    assert result.output == b"on\n"


def test_what_is_left_in_the_background_ends_with_the_command(run: Elsewhere) -> None:
    result = run("(sleep 4311; sleep 4312) & echo done")

    assert (result.exit_code, result.output, result.detached) == (0, b"done\n", ())
    run.begin()
    assert run("ps 2>/dev/null | grep '[s]leep 431'").exit_code == 1


def test_what_is_detached_on_purpose_lives_on_and_is_named(run: Elsewhere) -> None:
    result = run("setsid sleep 4411 & sleep 4412 & echo done; sleep 0.3", keep=True)

    assert (result.exit_code, result.output) == (0, b"done\n")
    assert [left.split(" ", 1)[1] for left in result.detached] == ["sleep 4411"]
    number = result.detached[0].split()[0]
    assert run(f"kill -0 {number} && kill {number}").exit_code == 0


def test_much_output_is_cut_in_the_middle(run: Elsewhere) -> None:
    result = run("head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end")

    assert result.exit_code == 0
    assert (result.head[:4], result.tail[-5:]) == (b"xxxx", b"\nend\n")
    assert len(result.output) + result.cut_bytes == 3_000_005


def test_a_command_may_hold_any_bytes_and_lines(run: Elsewhere) -> None:
    command = "printf '%s' 'a\tb\\n\"$x\" é \udcff'\necho; echo '!'"

    assert run(command).output == b'a\tb\\n"$x" \xc3\xa9 \xff\n!\n'


def test_what_was_stopped_before_it_began_never_runs(run: Elsewhere) -> None:
    run.stop.stop()

    result = run("touch here")

    assert (result.stopped, result.exit_code, result.duration_s) == (True, None, 0.0)
    assert not (run.workspace / "here").exists()
