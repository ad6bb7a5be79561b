"""``gateway checkpoints`` and ``gateway prune`` on a store with real checkpoints."""

import fcntl
import json
import os
import pty
import re
import shlex
import shutil
import struct
import subprocess
import sys
import termios

import pytest
from click.testing import CliRunner

from engine.upkeep.progress import Step
from gateway.cli import cli
from gateway.cli.checkpoints import status_text
from gateway.cli.exits import Exit
from gateway.cli.progress import watched
from tests.gateway.cli.screens import Screen


@pytest.fixture
def store(gateway, workspace):
    """Two turns' checkpoints of the workspace."""
    gateway("chat", "--checkpoints", "--workspace", str(workspace), stdin="$ rm notes.md\n$ echo two > notes.md\n")
    return os.path.join(gateway.home, "checkpoints")


@pytest.fixture
def orphan(gateway, store, tmp_path):
    """A workspace with a checkpoint, whose directory has been deleted from among others."""
    path = tmp_path / "disk" / "gone"
    path.mkdir(parents=True)
    (tmp_path / "disk" / "other").mkdir()
    gateway("chat", "--checkpoints", "--workspace", str(path), stdin="$ echo x > a\n")
    shutil.rmtree(path)
    return str(path)


def listed(gateway) -> list[dict]:
    return json.loads(gateway("checkpoints", "list", "--json").stdout)


def test_the_status_needs_nothing_of_chats_and_agents(gateway, store):
    script = (
        "import sys\nfrom gateway.cli import main\n"
        "try: main(['checkpoints', 'status', '--json'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'gateway.app', 'gateway.service', 'gateway.agents'} & set(sys.modules)), file=sys.stderr)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=gateway.environment, check=True
    )

    assert json.loads(result.stdout)["prune"] is not None
    assert result.stderr == "[]\n"


def test_the_status_of_a_store_that_is_not_there_is_empty_and_makes_nothing(gateway):
    result = gateway("checkpoints")

    assert result.returncode == Exit.OK
    assert result.stdout.splitlines() == [
        f"Checkpoint base: {gateway.home}/checkpoints",
        "Total size:      0 B",
        "  store/         0 B",
        "  legacy-*       0 B",
        "Projects:        0",
    ]
    assert not os.path.exists(gateway.home)


def test_the_status_has_the_documented_form(gateway, store, orphan, workspace):
    legacy = os.path.join(store, "legacy-20260506-050616")
    os.makedirs(legacy)
    with open(os.path.join(legacy, "pack"), "wb") as file:
        file.write(b"x" * 4_404_020)

    lines = gateway("checkpoints", "status").stdout.splitlines()

    assert lines[0] == f"Checkpoint base: {store}"
    assert re.fullmatch(r"Total size:      4\.2 MB", lines[1])
    assert re.fullmatch(r"  store/         \d+\.\d KB", lines[2])
    assert lines[3:6] == ["  legacy-*       4.2 MB", "Projects:        2", ""]
    width = max(len(str(workspace)), len(orphan), 35)
    assert lines[6] == f"  {'WORKDIR':<{width}}  COMMITS  LAST TOUCH  STATE"
    rows = sorted(lines[7:9])  # their times are kept to the minute, and which is first within one is not promised
    assert re.fullmatch(rf"  {orphan:<{width}}        1  +(\d+[sm] ago|just now)  orphan", rows[0])
    assert re.fullmatch(rf"  {workspace!s:<{width}}        2  +(\d+[sm] ago|just now)  live", rows[1])
    assert lines[9:14] == [
        "",
        "Legacy archives (1):",
        "  legacy-20260506-050616   4.2 MB",
        "Clear with: gateway checkpoints clear-legacy",
        "",
    ]


def test_the_status_ends_with_where_the_space_goes(gateway, store, workspace):
    (workspace / "data.bin").write_bytes(os.urandom(200_000))
    gateway("chat", "--checkpoints", "--workspace", str(workspace), stdin="$ echo three > notes.md\n")
    newest = listed(gateway)[0]["checkpoints"][0]["id"]

    lines = gateway("checkpoints", TAKEBACK_CHECKPOINTS__MAX_SNAPSHOTS="1").stdout.splitlines()
    status = json.loads(gateway("checkpoints", "--json").stdout)

    at = lines.index("Held by one workspace alone:")
    assert re.fullmatch(rf" +19\d\.\d KB  {workspace}", lines[at + 1])
    at = lines.index("Largest files:")
    assert re.fullmatch(rf" +195\.\d KB  data\.bin in {workspace}, in {newest[:7]}", lines[at + 1])
    assert re.fullmatch(r"A prune would free about \d+\.\d KB and drop 2 things: gateway prune --dry-run", lines[-1])
    assert status["accounting"]["workspaces"][0]["unique_bytes"] > 200_000
    assert status["accounting"]["largest"][0]["checkpoints"] == [newest]
    assert status["prune"]["decisions"] == []


def test_the_status_as_json_holds_the_same(gateway, store, workspace):
    status = json.loads(gateway("checkpoints", "--json").stdout)

    assert status["base"] == store
    assert [(project["workdir"], project["checkpoints"]) for project in status["projects"]] == [(str(workspace), 2)]


def test_a_store_that_cannot_be_read_is_said(gateway, store):
    shutil.rmtree(os.path.join(store, "store", "objects"))
    with open(os.path.join(store, "store", "HEAD"), "w") as file:
        file.write("nonsense")

    result = gateway("checkpoints")

    assert result.returncode == Exit.ERROR
    assert result.stdout.startswith("Checkpoint base:")
    assert "Traceback" not in result.stderr
    assert result.stderr.startswith("gateway: ")


def test_the_list_is_numbered_as_in_the_chat(gateway, store, workspace):
    lines = gateway("checkpoints", "list").stdout.splitlines()

    assert lines[0] == f"{workspace}:"
    assert re.fullmatch(
        r"  1\. [0-9a-f]{7}  \d{4}-\d\d-\d\d \d\d:\d\d  before terminal: echo two > notes\.md  \(1 file, \+1/-0\)",
        lines[1],
    )
    assert "before terminal: rm notes.md" in lines[2]
    assert gateway("checkpoints", "list", str(workspace)).stdout.splitlines() == lines


def test_a_directory_without_checkpoints_is_said(gateway, store):
    result = gateway("checkpoints", "list", "/nonexistent")

    assert result.returncode == Exit.ERROR
    assert "the store has no checkpoints of /nonexistent" in result.stderr


def test_a_dry_run_names_what_a_prune_then_drops(gateway, store):
    arguments = ["prune"]
    environment = {"TAKEBACK_CHECKPOINTS__MAX_SNAPSHOTS": "1"}
    oldest = listed(gateway)[0]["checkpoints"][-1]["id"]

    planned = gateway(*arguments, "--dry-run", **environment)
    before = listed(gateway)
    done = gateway(*arguments, **environment)

    assert f"would drop checkpoint {oldest[:8]}" in planned.stdout
    assert len(before[0]["checkpoints"]) == 2
    assert done.stdout.startswith("Dropped 1 checkpoint")
    assert [item["id"] for item in listed(gateway)[0]["checkpoints"]] == [before[0]["checkpoints"][0]["id"]]
    assert "Last prune:" in gateway("checkpoints").stdout


def test_the_command_line_beats_the_configuration_and_a_workspace_has_its_own_rule(gateway, store, workspace):
    with open(os.path.join(gateway.home, "config.yaml"), "w") as file:
        file.write(
            "checkpoints: {max_snapshots: 1}\n"
            f"workspaces: {{p: {{path: {workspace}, checkpoints: {{max_snapshots: 9}}}}}}\n"
        )
    gateway("prune")
    kept = len(listed(gateway)[0]["checkpoints"])
    gateway("prune", "--max-size-mb", "0.001")

    assert kept == 2
    assert len(listed(gateway)[0]["checkpoints"]) == 1


def test_a_cap_out_of_reach_is_said_with_what_holds_the_space(gateway, store, workspace):
    small = {"TAKEBACK_CHECKPOINTS__MAX_TOTAL_SIZE_MB": "0.001"}

    done = gateway("prune", **small)
    status = gateway("checkpoints", **small)

    said = r"the store stays \d+\.\d KB over its cap of 1\.0 KB, and no rule lets more go\. It holds .*What helps: "
    assert re.search(f"(?m)^note: {said}", done.stdout)
    assert done.returncode == Exit.OK
    assert re.search(f"(?m)^Even after a prune {said}", status.stdout)
    assert status.returncode == Exit.OK


def test_a_prune_by_hand_drops_what_sessions_began_with_that_are_over(gateway, store, workspace):
    gateway("chat", "--checkpoints", "--workspace", str(workspace), stdin="/new\n$ echo three > notes.md\n")

    promised = json.loads(gateway("checkpoints", "--json").stdout)["prune"]["decisions"]
    report = json.loads(gateway("prune", "--json").stdout)

    assert [(item["rule"], item["target"]) for item in promised] == [("session", "session baseline")]
    assert report["decisions"] == promised


def test_a_prune_that_cannot_read_the_database_keeps_what_sessions_began_with_and_says_so(gateway):
    os.makedirs(gateway.home, 0o700)
    with open(os.path.join(gateway.home, "gateway.db"), "wb") as database:
        database.write(b"this is no database" * 1000)

    done = gateway("prune", "--json")

    assert done.returncode == Exit.OK
    assert json.loads(done.stdout)["decisions"] == []
    assert "gateway: warning: what sessions began with stays, also of those that are over: " in done.stderr


def test_orphans_go_only_when_asked_for_and_agreed_to(gateway, orphan, workspace):
    gateway("prune", "--retention-days", "0.000001")
    after_sweep = {project["workdir"] for project in listed(gateway)}
    refused = gateway("prune", "--orphans")
    agreed = gateway("prune", "--orphans", "--yes", "--json")

    assert orphan in after_sweep
    assert refused.returncode == Exit.USAGE
    assert "--yes is needed where nobody can be asked" in refused.stderr
    assert f"gone: {orphan} (1 checkpoint)" in refused.stdout
    report = json.loads(agreed.stdout)
    assert report["outcome"] == "done"
    assert {decision["workdir"] for decision in report["decisions"]} == {orphan}
    assert orphan not in {project["workdir"] for project in listed(gateway)}


def test_an_orphan_whose_deletion_is_not_proved_stays(gateway, orphan, tmp_path):
    # What a disk that is not mounted leaves: an empty directory where it would be.
    os.rename(tmp_path / "disk", tmp_path / "unmounted")
    os.mkdir(tmp_path / "disk")

    result = gateway("prune", "--orphans", "--yes")

    assert f"kept: {orphan}: the directory that held it is another one now" in result.stdout
    assert orphan in {project["workdir"] for project in listed(gateway)}


def test_a_person_is_asked_about_orphans_and_may_say_no_and_json_is_kept_apart(gateway, orphan, tmp_path):
    line = shlex.join(gateway.line("prune", "--orphans", "--json"))
    screen = Screen(["sh", "-c", f"exec {line} > {tmp_path}/out"], env=gateway.environment)
    screen.shows("Drop these for good?")
    screen.press("n\r")

    assert screen.ends() == Exit.ERROR
    assert f"gone: {orphan} (1 checkpoint)" in screen.text
    assert "Nothing was dropped." in screen.text
    assert (tmp_path / "out").read_text() == ""
    assert orphan in {project["workdir"] for project in listed(gateway)}


def test_a_held_store_is_busy(gateway, store):
    with open(os.path.join(gateway.home, ".checkpoints.lock"), "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = gateway("prune")

    assert result.returncode == Exit.BUSY
    assert result.stderr.startswith("gateway: busy: ")


def test_verify_is_healthy_until_an_object_is_damaged(gateway, store):
    healthy = gateway("checkpoints", "verify")
    objects = os.path.join(store, "store", "objects")
    for directory, _names, files in os.walk(objects):
        for name in files:
            path = os.path.join(directory, name)
            os.chmod(path, 0o600)
            with open(path, "r+b") as file:
                file.truncate(3)
    damaged = gateway("checkpoints", "verify", "--json")

    assert healthy.returncode == Exit.OK
    assert "The store is healthy." in healthy.stdout
    assert damaged.returncode == Exit.ERROR
    assert json.loads(damaged.stdout)["healthy"] is False


def test_clear_asks_and_leaves_the_lock(gateway, store, workspace):
    unasked = gateway("checkpoints", "clear")
    screen = Screen(gateway.line("checkpoints", "clear"), env=gateway.environment)
    screen.shows("This deletes 2 checkpoints of 1 workspace and 0 legacy archives")
    screen.press("n\r")
    declined = screen.ends()
    kept = len(listed(gateway))
    forced = gateway("checkpoints", "clear", "-f")

    assert unasked.returncode == Exit.USAGE
    assert (declined, kept) == (Exit.ERROR, 1)
    assert forced.returncode == Exit.OK
    assert listed(gateway) == []
    assert os.path.exists(os.path.join(gateway.home, ".checkpoints.lock"))
    assert (workspace / "notes.md").read_text() == "two\n"


def test_clear_legacy_deletes_the_archives_alone(gateway, store):
    os.makedirs(os.path.join(store, "legacy-20260506-050616", "x"))

    first = gateway("checkpoints", "clear-legacy")
    second = gateway("checkpoints", "clear-legacy")

    assert "Deleted legacy-20260506-050616" in first.stdout
    assert second.stdout == "There was nothing to delete.\n"
    assert len(listed(gateway)) == 1


def test_a_workspace_that_is_not_known_has_its_hash():
    from engine.upkeep.status import ProjectStatus, State, StoreStatus

    project = ProjectStatus("0123456789abcdef", None, 3, None, None, State.UNKNOWN)

    text = status_text(StoreStatus("/base", exists=True, projects=(project,)))

    assert text.splitlines()[-1] == f"  {'(unknown: 0123456789abcdef)':<35}        3       never  unknown"


def test_what_cannot_be_done_at_all_is_not_called_partly_done(gateway):
    os.makedirs(os.path.join(gateway.home, "checkpoints"), 0o700)

    done = gateway("prune", PATH="/nonexistent")

    assert (done.returncode, done.stdout) == (Exit.ERROR, "Dropped nothing; 0 B freed.\n")
    assert done.stderr.startswith("gateway: git cannot be used: ")


def test_output_that_finds_no_room_is_said(gateway):
    with open("/dev/full", "wb") as full:
        process = gateway.start("checkpoints", stdout=full, stderr=subprocess.PIPE)
        _out, errors = process.communicate(timeout=60)

    assert process.returncode == Exit.ERROR
    assert errors == b"gateway: what there is to say could not be written: No space left on device\n"


def test_a_store_on_a_disk_that_is_not_mounted_is_not_called_healthy(gateway):
    os.mkdir(gateway.home)
    os.symlink("/nonexistent/disk", os.path.join(gateway.home, "checkpoints"))

    done = gateway("checkpoints", "verify")

    assert (done.returncode, done.stdout) == (Exit.ERROR, "")
    assert done.stderr.startswith(f"gateway: {gateway.home}/checkpoints: No such file or directory")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (["prune", "--retention-days", "nan"], "'nan' is not a number"),
        (["prune", "--max-size-mb", "inf"], "not in the range"),
        (["checkpoints", "--json", "list"], "--json belongs behind list"),
    ],
)
def test_an_option_that_could_not_be_obeyed_is_refused(line, why):
    done = CliRunner().invoke(cli, line)

    assert done.exit_code == Exit.USAGE
    assert why in done.stderr


def test_progress_never_wraps(monkeypatch):
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 30, 0, 0))
    with open(side, "w") as terminal, open(main, "rb", buffering=0) as shown:
        monkeypatch.setattr(sys, "stderr", terminal)
        with watched(shown=True) as watch:
            watch.progress(Step("reclaiming space", 1, 1, 5_000_000))
            seen = shown.read(1000)

    assert seen == b"\r\x1b[Kreclaiming space  [##########"


def test_a_clear_that_is_refused_does_not_say_that_there_was_nothing(gateway):
    journal = os.path.join(gateway.home, "checkpoints", "store", "journal")
    os.makedirs(journal)
    with open(os.path.join(journal, "0123456789abcdef.json"), "w") as cut_off:
        cut_off.write("{}")
    screen = Screen(gateway.line("checkpoints", "clear"), env=gateway.environment)
    screen.shows("Delete them?")
    screen.press("y\r")

    assert screen.ends() == Exit.ERROR
    assert "Nothing was deleted." in screen.text
    assert "a restore was cut off by a crash" in screen.text
