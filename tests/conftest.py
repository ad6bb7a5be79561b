"""What holds for every test: a clean environment, nothing but loopback, no blocked event loop, no skip in CI.

Tests start from the state of a fresh machine: an empty home, no git or Takeback variables, UTC, umask 022. Async
tests run on asyncio, without a marker.
"""

import gc
import ipaddress
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from blockbuster import BlockBuster
from hypothesis import HealthCheck, settings

PACKAGES = ("gateway", "engine", "adapters")
# Whatever steers git, Takeback, a pager or a network client from outside would make a test mean another thing.
FOREIGN_PREFIXES = ("GIT_", "TAKEBACK_", "XDG_", "LC_", "SSH_")
FOREIGN = {
    "LANGUAGE",
    "PAGER",
    "EDITOR",
    "VISUAL",
    "LESS",
    "NO_COLOR",
    "FORCE_COLOR",
    "COLUMNS",
    "LINES",
    "CDPATH",
    "ENV",
}
FOREIGN |= {f"{scheme}_proxy" for scheme in ("http", "https", "all", "no")}
PLAIN = {"TZ": "UTC", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
UMASK = 0o022

# A test may be slow on a busy machine without being wrong: no deadline. CI repeats the same inputs in every run;
# HYPOTHESIS_PROFILE=deep searches at length, and prints how to repeat what it finds.
settings.register_profile("ci", derandomize=True, max_examples=50, deadline=None, database=None)
settings.register_profile(
    "deep", max_examples=5000, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


class OutsideConnectionError(AssertionError):
    """A test reached for an address other than loopback; nothing was sent."""


attempts: list[str] = []
skips: list[str] = []
told: list[str] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the engine look for changes instead of hearing of them, which has to give the same."""
    parser.addoption("--change-feed", choices=("on", "off"), default="on", help="off: engines only walk")


def pytest_configure(config: pytest.Config) -> None:
    """Clean the process before anything is collected: modules and wide fixtures see it too."""
    if config.getoption("--change-feed") == "off":
        from engine.api import Engine

        Engine.__init__.__kwdefaults__["change_feed"] = False
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # a run under nohup would hand on that it is ignored
    for name in [*os.environ]:
        if name.startswith(FOREIGN_PREFIXES) or name in FOREIGN or name.lower() in FOREIGN:
            del os.environ[name]
    os.environ.update(PLAIN)
    time.tzset()
    os.umask(UMASK)
    sys.addaudithook(refuse_outside)


def pytest_collection_finish() -> None:
    """Leave what collecting made, which stays to the end, out of every later search for garbage."""
    gc.collect()
    gc.freeze()


def refuse_outside(event: str, arguments: tuple[object, ...]) -> None:
    """Audit hook: end a connection, a datagram or a name look-up that would leave the machine, before it starts."""
    if event in {"socket.connect", "socket.sendto"}:
        address = arguments[1]
    elif event in {"socket.getaddrinfo", "socket.gethostbyname"}:
        address = (arguments[0],)
    else:
        return
    if not stays_here(address):
        attempts.append(f"{event} {address!r}")
        raise OutsideConnectionError(attempts[-1])


def stays_here(address: object) -> bool:
    """Whether a socket address, or a host's name in a tuple, is on this machine."""
    host = address[0] if isinstance(address, tuple) else None
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    if not isinstance(host, str) or host in {"", "localhost"}:
        return True  # a socket file, another family, or whatever listens here
    try:
        number = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return number.is_loopback or number.is_unspecified


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The one event loop that the gateway runs on."""
    return "asyncio"


@pytest.fixture(autouse=True)
def clean_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home of the test's own; Takeback's is the default below it. The umask is what a login has."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    os.umask(UMASK)
    return home


@pytest.fixture(autouse=True)
def outside_attempts() -> Iterator[list[str]]:
    """The attempts to leave the machine so far; any that is left at the end fails the test, also a swallowed one."""
    attempts.clear()
    yield attempts
    assert not attempts, "a test may only connect to loopback"


@pytest.fixture(scope="session")
def block_buster() -> BlockBuster:
    """Judges calls that have our code on their stack; a test's own preparations may block its own loop."""
    return BlockBuster([*PACKAGES])


@pytest.fixture(autouse=True)
def nothing_blocks_the_loop(request: pytest.FixtureRequest, block_buster: BlockBuster) -> Iterator[None]:
    """A blocking call of ours in a thread that runs an event loop raises. The engine's own tests run no loop."""
    if "engine" in request.path.relative_to(request.config.rootpath).parts or request.node.get_closest_marker("bench"):
        yield
        return
    block_buster.activate()
    try:
        yield
    finally:
        block_buster.deactivate()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note a test that was skipped, or was expected to fail, and what a test has to tell about itself."""
    if report.skipped:
        skips.append(report.nodeid)
    if report.when == "call":
        told.extend(str(value) for name, value in report.user_properties if name == "told")


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Note a module that skipped itself."""
    if report.skipped:
        skips.append(report.nodeid)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI everything that the tests need is there: a skip hides a failure."""
    if (
        skips
        and os.environ.get("CI") == "true"
        and session.exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}
    ):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what tests have to tell, and which skips failed the run."""
    if told:
        terminalreporter.section("what was broken off, and where")
        terminalreporter.write_line("\n".join(sorted(told)))
    if skips and os.environ.get("CI") == "true":
        terminalreporter.section("skipped, which is a failure in CI")
        terminalreporter.write_line("\n".join(skips))
