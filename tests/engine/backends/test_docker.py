"""Containers by docker's command line, with a real podman: whose they are, how they come and go, what is said."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.backends.container import Idleness, is_gone, this_owner
from engine.errors import ToolRefused
from tests.containers import Podman
from tests.engine.backends.conftest import Elsewhere

NAME = "takeback-0123456789ab"


@pytest.fixture
def opened(tmp_path: Path, podman: Podman) -> Iterator[list[Elsewhere]]:
    """The places that a test made; closed at its end, and no container is left."""
    made: list[Elsewhere] = []
    yield made
    for run in made:
        run.backend.close()
    podman("rm", "-f", "-a", "-t", "0")


def place(opened: list[Elsewhere], base: Path, podman: Podman, **options: object) -> Elsewhere:
    opened.append(Elsewhere(base, "docker", podman.options(**options)))
    return opened[-1]


def inspect(podman: Podman, what: str, name: str = NAME) -> str:
    return podman("container", "inspect", "--format", what, name).strip()


def test_a_container_is_named_after_the_workspace_has_no_network_and_goes_with_the_backend(
    tmp_path: Path, podman: Podman, opened: list[Elsewhere]
) -> None:
    run = place(opened, tmp_path, podman, pids=64, memory_mb=128, cpus=0.5)

    interfaces = run("ls /sys/class/net /proc/sys/net/ipv4/conf 2>/dev/null | sort -u | tr '\\n' ' '").output.decode()
    names = podman.names()
    limits = inspect(podman, "{{.HostConfig.PidsLimit}} {{.HostConfig.Memory}} {{.HostConfig.NanoCpus}}")
    run.backend.close()

    assert names == [NAME]
    assert "eth0" not in interfaces
    assert limits == f"64 {128 * 1024 * 1024} 500000000"
    assert podman.names() == []


def test_the_host_is_not_there_unless_it_is_mounted(tmp_path: Path, podman: Podman, opened: list[Elsewhere]) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "here").write_text("the host's\n")

    assert place(opened, tmp_path, podman)("ls -A").output == b""
    opened[0].backend.close()
    mounted = place(opened, tmp_path, podman, mount=True, path="/work", user="1000")
    assert mounted("pwd; cat here; id -u").output == b"/work\nthe host's\n1000\n"


def test_one_that_somebody_else_started_is_used_and_left_alone(
    tmp_path: Path, podman: Podman, opened: list[Elsewhere]
) -> None:
    number = podman.start("theirs")
    run = place(opened, tmp_path, podman, name="theirs", path="/tmp")

    assert run("touch /tmp/ours; pwd").output == b"/tmp\n"
    run.backend.close()
    assert podman.names() == ["theirs"]
    assert inspect(podman, "{{.Id}} {{.State.Running}}", "theirs") == f"{number} true"


def test_one_that_is_there_and_does_not_run_is_not_touched(
    tmp_path: Path, podman: Podman, opened: list[Elsewhere]
) -> None:
    podman.start("theirs")
    podman("stop", "-t", "0", "theirs")

    with pytest.raises(ToolRefused, match="the container 'theirs' is there but does not run; start it, or remove it"):
        place(opened, tmp_path, podman, name="theirs")("true")
    assert podman.names() == ["theirs"]


def test_what_a_dead_process_left_behind_goes_at_the_next_start_and_what_a_living_one_has_stays(
    tmp_path: Path, podman: Podman, opened: list[Elsewhere]
) -> None:
    home = f"--label=takeback.home={tmp_path / 'private'}"
    dead = subprocess.Popen([sys.executable, "-c", ""])
    owner = f"{dead.pid}.12"
    dead.wait()
    podman.start(NAME, home, f"--label=takeback.owner={owner}")
    podman.start("another-workspaces", home, f"--label=takeback.owner={owner}")
    podman.start("of-this-process", home, f"--label=takeback.owner={this_owner()}")
    podman.start("of-another-home", "--label=takeback.home=/elsewhere", f"--label=takeback.owner={owner}")

    assert place(opened, tmp_path, podman)("echo mine").output == b"mine\n"

    assert sorted(podman.names()) == ["of-another-home", "of-this-process", NAME]
    assert inspect(podman, '{{index .Config.Labels "takeback.owner"}}') == this_owner()


def test_a_container_that_vanishes_is_said_and_the_next_command_has_another(
    tmp_path: Path, podman: Podman, opened: list[Elsewhere]
) -> None:
    run = place(opened, tmp_path, podman)
    run("touch made")
    podman("rm", "-f", "-t", "0", NAME)

    with pytest.raises(ToolRefused, match=f"the container '{NAME}' is gone or was stopped meanwhile"):
        run("ls")
    assert run("ls -A").output == b""


def test_one_that_vanishes_while_a_command_runs_is_no_exit_code(
    tmp_path: Path, podman: Podman, opened: list[Elsewhere]
) -> None:
    run = place(opened, tmp_path, podman)
    remover = threading.Thread(target=lambda: podman("rm", "-f", "-t", "0", NAME))

    result = run.backend.run("echo up; sleep 60", str(run.workspace), run.env, 60, lambda _: remover.start(), run.stop)
    remover.join()

    assert (result.exit_code, result.output) == (None, b"up\n")
    assert result.lost


def test_without_the_program_the_image_or_its_service_it_is_said(
    tmp_path: Path, podman: Podman, opened: list[Elsewhere]
) -> None:
    dead = tmp_path / "dead"
    dead.write_text("#!/bin/sh\necho 'Cannot connect to the Docker daemon at unix:///x. Is it running?' >&2\nexit 1\n")
    dead.chmod(0o755)
    for options, reason in (
        ({"cli": "/no/such/docker"}, "the program '/no/such/docker' is not installed here"),
        ({"cli": str(dead)}, "Cannot connect to the Docker daemon at unix:///x. Is it running"),
        ({"image": "localhost/none:1"}, "the image 'localhost/none:1' is not on this machine; fetch it first: .* pull"),
        ({"image": None, "name": "none"}, "no container 'none' runs, and no image is configured"),
        ({"args": ["--no-such-flag"]}, "no container could be started: .*no-such-flag"),
    ):
        with pytest.raises(ToolRefused, match=reason):
            place(opened, tmp_path, podman, **options)("true")
    assert podman.names() == []


def test_a_gateway_that_is_killed_takes_its_command_with_it(
    tmp_path: Path, podman: Podman, opened: list[Elsewhere]
) -> None:
    podman.start("theirs")
    code = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from tests.containers import Podman\n"
        "from tests.engine.backends.conftest import Elsewhere\n"
        "cli, base = sys.argv[1:]\n"
        "place = Elsewhere(Path(base), 'docker', Podman(cli, '').options(name='theirs', path='/tmp'))\n"
        "kill = lambda _: os.kill(os.getpid(), signal.SIGKILL)\n"
        "place.backend.run('echo up; sleep 4611', base, place.env, 60, kill, place.stop)\n"
    )
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", code, podman.cli, str(tmp_path)], check=False, cwd=root, env={**os.environ}, timeout=60
    )

    assert done.returncode == -9
    # Waits there until it is gone.
    waited = podman("exec", "theirs", "sh", "-c", "while ps | grep -q '[s]leep 4611'; do sleep 0.1; done; echo gone")
    assert waited == "gone\n"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"name": "-rm"}, "'-rm' is no name for a container"),
        ({"image": "--privileged"}, "its option 'image' cannot be '--privileged'"),
        ({"cpus": -1}, "its option 'cpus' must be a number above 0"),
        ({"mount": "yes"}, "its option 'mount' must be true or false"),
        ({"mount": True, "path": "/a,b"}, "its option 'mount' is not possible"),
        ({"volume": "x"}, "has no option 'volume'"),
    ],
)
def test_an_option_that_cannot_be_used_is_named(tmp_path: Path, options: dict[str, object], reason: str) -> None:
    with pytest.raises(ToolRefused, match=reason):
        Elsewhere(tmp_path, "docker", options)


def test_a_network_that_is_asked_for_replaces_none(tmp_path: Path) -> None:
    words = [
        Elsewhere(tmp_path, "docker", options).backend._runtime.run_arguments  # type: ignore[attr-defined]
        for options in ({"image": "i"}, {"image": "i", "network": "bridge"}, {"image": "i", "args": ["--net=host"]})
    ]

    assert words == [["--network=none"], ["--network=bridge"], ["--net=host"]]


def test_what_nobody_uses_for_a_while_is_given_up_once() -> None:
    given_up = threading.Event()
    idle = Idleness(0.01, given_up.set)

    with idle.in_use(), idle.in_use():
        assert not given_up.is_set()
    assert given_up.wait(30)


def test_what_is_used_again_is_not_given_up() -> None:
    given_up = threading.Event()
    idle = Idleness(0.05, given_up.set)
    with idle.in_use():
        pass

    with idle.in_use():
        assert not given_up.wait(0.2)
    idle.cancel()
    assert not given_up.wait(0.2)


def test_an_owner_is_gone_only_when_its_process_is() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    number, _, started = this_owner().partition(".")

    assert is_gone(f"{ended.pid}.{started}")
    assert is_gone(f"{number}.{int(started) + 1}")
    assert not is_gone(this_owner())
    assert not is_gone("somebody")
