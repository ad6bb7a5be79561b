"""What other processes of the gateway's user can read of its environment on Linux: as a usual user, and as root."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
NOBODY = 65534
USERS = {"root": 0, "another user": NOBODY} if os.geteuid() == 0 else {"this user": os.geteuid()}
LOOKS = 'cat /proc/$PPID/environ | tr "\\0" "\\n"; head -c 1 /proc/$PPID/mem; env'

# A gateway that changes its user first, so that it need not be able to read this checkout as another.
PROCESS = f"""
import ctypes, os, subprocess, sys
from gateway.operation.concealment import conceal

user = int(sys.argv[1])
if user != os.geteuid():
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
    # A process that changes its user is one that nobody may look into: as if it had begun as that user.
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
if sys.argv[2] == "conceal":
    conceal(os.environ, ["TAKEBACK_TELEGRAM__TOKEN"], ["OTHER_TOKEN", "NOT_SET"])
subprocess.run(["/bin/sh", "-c", {LOOKS!r}], check=False, env={{"PATH": os.environ["PATH"]}})
libc = ctypes.CDLL(None)
libc.getenv.restype = ctypes.c_char_p
known = (os.environ.get("TAKEBACK_TELEGRAM__TOKEN"), os.environ["OTHER_TOKEN"], libc.getenv(b"OTHER_TOKEN"))
print("KNOWN", *known, flush=True)
"""


def looked_at(user: int, act: str) -> str:
    secrets = {"TAKEBACK_TELEGRAM__TOKEN": "own-secret-1", "OTHER_TOKEN": "foreign-secret-2"}
    done = subprocess.run(
        [sys.executable, "-c", PROCESS, str(user), act],
        cwd="/",
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HARMLESS": "as-it-was", **secrets},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("user", USERS.values(), ids=USERS)
def test_a_command_of_the_same_user_reads_no_secret_of_the_gateway(user: int) -> None:
    shown = looked_at(user, "nothing")
    concealed = looked_at(user, "conceal")

    before, _, known = concealed.rpartition("KNOWN ")
    assert "own-secret-1" in shown
    assert "HARMLESS=as-it-was" in shown
    assert "secret" not in before.replace("TAKEBACK_TELEGRAM__TOKEN=", "").replace("OTHER_TOKEN=", "")
    assert known.splitlines()[0] == "None foreign-secret-2 b'foreign-secret-2'"
    if user == 0:
        assert "HARMLESS=as-it-was" in before
    else:
        assert before.count("HARMLESS") == 0
        assert "ermission denied" in concealed


def test_the_program_conceals_what_its_environment_held(tmp_path: Path) -> None:
    secrets = {"OPENAI_API_KEY": "usual-secret-1", "OTHER_TOKEN": "foreign-secret-2"}
    app = tmp_path / "app"
    app.mkdir()

    done = subprocess.run(
        [sys.executable, "-m", "gateway", "chat", "--workspace", str(app)],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), **secrets},
        input="$ cat /proc/$PPID/environ > seen; env > own; echo done\n",
        capture_output=True,
        text=True,
        check=True,
    )

    assert "done" in done.stdout
    assert "PATH=" in (app / "own").read_text()
    assert [
        value for value in secrets.values() if value in (app / "seen").read_text() + (app / "own").read_text()
    ] == []
