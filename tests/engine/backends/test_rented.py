"""What holds of every service that rents out sandboxes: whose one is, what is said, how files and commands fare."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.backends.container import this_owner
from engine.backends.registry import create_backend
from engine.backends.service import HOME_LABEL, OWNER_LABEL
from engine.errors import ToolRefused
from engine.tools.sandbox import SandboxTree
from tests.engine.backends.rented_kit import NAME, OPTIONS, Rented, rented, sandbox

KINDS = ["modal", "daytona", "vercel_sandbox"]
KNOWN_BY = [(kind, name) for kind in KINDS for name in OPTIONS[kind] if name != "target"]


@pytest.fixture(scope="module", params=KINDS)
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rented]:
    """One service for all tests of a kind, since its library takes long to be imported."""
    with rented(request.param, tmp_path_factory.mktemp(request.param)) as made:
        yield made


@pytest.fixture
def at(service: Rented, tmp_path: Path) -> Iterator[Rented]:
    service.begin(tmp_path)
    yield service
    service.end()


def test_the_sandbox_is_started_once_found_again_and_removed_in_the_end(at: Rented) -> None:
    run = at.place()
    assert at.machine() is None

    run("echo kept > file")
    assert run("cat file").output == b"kept\n"
    assert at.labels() == {HOME_LABEL: at.labels()[HOME_LABEL], OWNER_LABEL: this_owner()}
    run.backend.close()

    assert at.machine() is None


def test_one_that_somebody_else_started_is_used_and_left_alone(at: Rented) -> None:
    theirs = at.place(name="theirs")
    theirs("echo theirs > file")
    machine = at.machine("theirs")
    assert machine is not None
    machine.facts["labels" if at.kind == "daytona" else "tags"].pop(HOME_LABEL)

    run = at.place(name="theirs")
    assert run("cat file").output == b"theirs\n"
    run.backend.close()

    assert at.machine("theirs") is machine


def test_what_a_dead_process_left_behind_is_taken_over_with_its_files(at: Rented) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    at.place()("echo left > file")
    machine = at.machine()
    assert machine is not None
    machine.facts["labels" if at.kind == "daytona" else "tags"][OWNER_LABEL] = f"{dead.pid}.1"

    run = at.place()
    assert run("cat file").output == b"left\n"
    assert at.labels()[OWNER_LABEL] == this_owner()
    run.backend.close()

    assert at.machine() is None


def test_a_command_gets_its_language_and_what_is_configured_and_nothing_else_of_ours(at: Rented) -> None:
    run = at.place(env={"CI": "1"})

    assert run('echo "$LANG|$CI|$SECRET"; pwd').output.decode() == f"C.UTF-8|1|\n{at.base / 'inside'}\n"


def test_output_comes_while_it_runs_and_the_stop_ends_the_group(at: Rented) -> None:
    run = at.place()
    run.stop_at = b"ready"

    result = run("sleep 4511 & setsid sleep 4512 & echo one; echo ready >&2; wait")

    assert (result.stopped, result.left_running, result.output) == (True, False, b"one\nready\n")
    assert b"".join(run.heard) == result.output
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, check=True).stdout
    assert b"sleep 451" not in listed


def test_a_time_limit_ends_it(at: Rented) -> None:
    result = at.place()("echo on; sleep 4611", timeout_s=0.5)

    assert (result.timed_out, result.signal, result.left_running, result.output) == (True, 15, False, b"on\n")


def test_exit_codes_and_much_output_are_as_everywhere(at: Rented) -> None:
    result = at.place()("yes 0123456789abcdef | head -n 70000; exit 7")

    assert (result.exit_code, result.signal, result.lost) == (7, None, "")
    assert result.head.startswith(b"0123456789abcdef\n")
    assert len(result.output) + result.cut_bytes == 70_000 * 17
    assert result.cut_bytes > 0


def test_files_of_any_bytes_are_written_and_read_inside(at: Rented) -> None:
    run = at.place()
    content = bytes(range(256)) * 300

    SandboxTree(sandbox(run)).write_file("deep/er/file", [content], 0o644)
    with SandboxTree(sandbox(run)).open_file("deep/er/file") as file:
        assert file.read() == content

    assert (at.base / "inside" / "deep" / "er" / "file").read_bytes() == content
    assert os.listdir(run.workspace) == []


def test_a_short_program_that_fails_says_so_with_its_own_words(at: Rented) -> None:
    done = sandbox(at.place()).execute(["/bin/sh", "-c", "cat; echo bad >&2; exit 9"], b"in\0put")

    assert (done.exit_code, done.output, done.errors) == (9, b"in\0put", b"bad\n")


def test_a_sandbox_that_vanished_is_said_and_the_next_command_has_another(at: Rented) -> None:
    run = at.place()
    run("true")
    machine = at.machine()
    assert machine is not None
    machine.stop()
    for name in list(at.service.machines):
        del at.service.machines[name]

    with pytest.raises(ToolRefused, match=f"the sandbox '{NAME}' is gone or was stopped meanwhile"):
        run("ls")
    assert run("echo again").output == b"again\n"


def test_the_network_is_closed_unless_it_is_opened(at: Rented) -> None:
    closed, open_ = at.place(name="closed"), at.place(name="open", network="all")
    closed("true")
    open_("true")

    assert [blocked(at, name) for name in ("closed", "open")] == [True, False]


def blocked(at: Rented, name: str) -> bool:
    machine = at.machine(name)
    assert machine is not None
    match at.kind:
        case "modal":
            modes = machine.facts["definition"].network_access
            return modes.network_access_type == modes.NetworkAccessType.BLOCKED
        case "daytona":
            return bool(machine.facts["networkBlockAll"])
        case _:
            return machine.facts["networkPolicy"] == {"mode": "deny-all"}


def test_a_directory_that_cannot_be_made_is_said_and_no_sandbox_is_left(at: Rented) -> None:
    (at.base / "file").write_text("")

    with pytest.raises(ToolRefused, match=r"/file/below could not be made in the sandbox \(.+\); set another path"):
        at.place(path=str(at.base / "file" / "below"))("true")
    assert at.machine() is None


def test_a_service_that_cannot_be_reached_is_said(at: Rented) -> None:
    with pytest.raises(ToolRefused, match=r"the service cannot be reached \(.+\)\. Nothing ran"):
        at.place(server="http://127.0.0.1:1")("true")


@pytest.mark.parametrize("kind", KINDS)
def test_without_the_library_the_line_that_installs_it_is_said(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra, module = {"vercel_sandbox": ("vercel", "vercel.sandbox.sync")}.get(kind, (kind, kind))
    monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(ToolRefused, match=rf"backend '{kind}': needs .+ Install it: pip install 'takeback\[{extra}\]'"):
        create_backend(kind, OPTIONS[kind], Rented(kind, tmp_path, None).site())


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in KINDS for name in OPTIONS[kind] if name != "target"]
)
def test_without_what_the_service_knows_somebody_by_nothing_is_asked(kind: str, name: str, tmp_path: Path) -> None:
    given = {other: value for other, value in OPTIONS[kind].items() if other != name}

    with pytest.raises(ToolRefused, match=f"its option '{name}' is needed"):
        create_backend(kind, given, Rented(kind, tmp_path, None).site())


@pytest.mark.parametrize("kind", KINDS)
def test_another_network_is_refused(kind: str, tmp_path: Path) -> None:
    with pytest.raises(ToolRefused, match="its option 'network' must be 'none' or 'all', not 'bridge'"):
        create_backend(kind, {**OPTIONS[kind], "network": "bridge"}, Rented(kind, tmp_path, None).site())
