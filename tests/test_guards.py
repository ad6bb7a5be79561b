"""The guards that stand around every test do stop what they are there to stop."""

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from blockbuster import BlockingError

ROOT = Path(__file__).parent.parent
# An address of the range that is kept for documentation: nobody is there, and nothing is sent.
OUTSIDE = "192.0.2.1"


def code_of(package: str, body: str) -> dict[str, object]:
    """What a file of one of our packages would define."""
    defined: dict[str, object] = {}
    exec(compile(body, str(ROOT / package / "some.py"), "exec"), defined)
    return defined


@pytest.mark.parametrize("package", ["gateway", "adapters", "engine"])
async def test_our_code_cannot_block_the_event_loop(package: str) -> None:
    nap = code_of(package, "import time\ndef nap(): time.sleep(0.001)")["nap"]

    with pytest.raises(BlockingError, match="sleep"):
        nap()  # type: ignore[operator]


async def test_a_test_may_prepare_on_its_own_loop(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("content", encoding="utf-8")

    assert (tmp_path / "file").read_text(encoding="utf-8") == "content"


@pytest.mark.parametrize(
    "reach",
    [
        lambda: socket.create_connection((OUTSIDE, 9), timeout=0.1),
        lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b"", (OUTSIDE, 9)),
        lambda: socket.getaddrinfo("host.example", 9),
        lambda: socket.gethostbyname("host.example"),
        lambda: socket.socket(socket.AF_INET6).connect(("2001:db8::1", 9)),
    ],
    ids=["connection", "datagram", "lookup", "old lookup", "version 6"],
)
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_nothing_outside_this_machine_is_reached(reach, outside_attempts: list[str]) -> None:
    with pytest.raises(AssertionError, match="socket"):
        reach()

    assert len(outside_attempts) == 1
    outside_attempts.clear()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.3.2.1", "localhost"])
def test_loopback_is_reached(host: str) -> None:
    with socket.create_server(("", 0)) as server, socket.create_connection((host, server.getsockname()[1])):
        pass


def test_a_test_starts_as_on_a_fresh_machine(clean_home: Path) -> None:
    assert os.path.expanduser("~") == str(clean_home)
    assert list(clean_home.iterdir()) == []
    assert [name for name in os.environ if name.startswith(("GIT_", "TAKEBACK_", "XDG_"))] == []
    assert time.localtime().tm_gmtoff == 0
    assert os.umask(0o022) == 0o022


SWALLOWS = f"""
import contextlib, socket

def test_swallows():
    with contextlib.suppress(BaseException):
        socket.create_connection(("{OUTSIDE}", 9), timeout=0.1)
"""
SKIPS = {
    "a test": "import pytest\n\ndef test_skips():\n    pytest.{0}('why')",
    "a module": "import pytest\npytest.{0}('why', allow_module_level=True)",
    "an expected failure": "import pytest\n\n@pytest.mark.{1}\ndef test_fails():\n    assert False",
}


def run_pytest(directory: Path, source: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a test file of its own under the same guards."""
    (directory / "tests").mkdir()
    shutil.copy(ROOT / "tests/conftest.py", directory / "tests")
    (directory / "tests/test_some.py").write_text(source, encoding="utf-8")
    settings = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(directory), "-p", "no:cacheprovider", "-n", "0"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *settings, str(directory / "tests")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def test_an_attempt_to_get_out_fails_the_test_even_when_it_is_swallowed(tmp_path: Path) -> None:
    finished = run_pytest(tmp_path, SWALLOWS)

    assert finished.returncode == 1
    assert "a test may only connect to loopback" in finished.stdout


@pytest.mark.parametrize("source", SKIPS.values(), ids=SKIPS)
@pytest.mark.parametrize("ci", ["true", ""])
def test_a_skip_fails_the_run_in_ci_alone(tmp_path: Path, source: str, ci: str) -> None:
    finished = run_pytest(tmp_path, source.format("sk" + "ip", "xf" + "ail") + "\n\ndef test_passes(): pass\n", CI=ci)

    assert (finished.returncode == pytest.ExitCode.TESTS_FAILED) == bool(ci), finished.stdout
    assert ("failure in CI" in finished.stdout) == bool(ci)
