"""``gateway chat`` as a process: the machine's door, pipes, and the terminal."""

import contextlib
import os
import signal
import stat
import subprocess

import pytest

from gateway.cli.exits import Exit
from tests.gateway.cli.doors import Door
from tests.gateway.cli.screens import Screen


@pytest.fixture
def open_door(gateway):
    """Starts ``gateway chat --jsonl``; whatever still runs at the end of the test is ended."""
    with contextlib.ExitStack() as stack:

        def start(*arguments: str) -> Door:
            process = gateway.start(
                "chat", "--jsonl", *arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
            )
            stack.callback(_end, process)
            return Door(process)

        yield start


@pytest.fixture
def open_screen(gateway, workspace):
    """Starts ``gateway chat`` on a terminal in the workspace, and waits for its prompt."""
    with contextlib.ExitStack() as stack:

        def start(*arguments: str) -> Screen:
            line = gateway.line("chat", "--workspace", str(workspace), *arguments)
            screen = Screen(line, env=gateway.environment)
            stack.callback(screen.kill)
            screen.shows("Ctrl-D ends")
            return screen

        yield start


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(BrokenPipeError):
                stream.close()


def configure(gateway, text: str) -> None:
    os.makedirs(gateway.home, mode=0o700, exist_ok=True)
    with open(os.path.join(gateway.home, "config.yaml"), "w") as file:
        file.write(text)


def test_a_change_is_made_shown_and_taken_back(open_door, workspace):
    door = open_door("--workspace", str(workspace), "--checkpoints")

    door.ask("$ rm notes.md")
    door.ask("/write new.txt\nhello\n")
    listed = door.ask("/rollback")
    restored = door.ask("/rollback 2")

    assert "📸 Checkpoints for" in listed
    assert "before terminal: rm notes.md" in listed
    assert restored.startswith("✅ Restored to checkpoint ")
    assert (workspace / "notes.md").read_text() == "one\n"
    assert not (workspace / "new.txt").exists()
    assert "✅" in door.ask("/redo")
    assert not (workspace / "notes.md").exists()
    assert door.end() == Exit.OK


def test_nothing_is_lost_when_the_program_is_started_anew_between_messages(open_door, workspace):
    arguments = ("--workspace", str(workspace), "--checkpoints")
    conversation = []
    for text in ("$ rm notes.md", "/write new.txt\nhello\n", "/rollback", "/rollback 2", "/redo", "/status"):
        door = open_door(*arguments)
        conversation.append(door.ask(text))
        assert door.end() == Exit.OK

    assert conversation[3].startswith("✅ Restored to checkpoint ")
    assert not (workspace / "notes.md").exists()
    assert (workspace / "new.txt").read_text() == "hello\n"
    assert "#2" in conversation[5]


def test_two_chats_work_in_two_workspaces_at_once(open_door, gateway, workspace, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    configure(gateway, f"default_workspace: one\nworkspaces: {{one: {{path: {workspace}}}, two: {{path: {other}}}}}\n")
    door = open_door()
    door.ask("/workspace two", chat="b")

    door.send("$ until test -e go; do sleep 0.05; done; pwd", chat="a")
    answer = door.ask("$ pwd", chat="b")
    (workspace / "go").write_text("")
    while not (answer_a := door.next()).get("done"):
        waited = answer_a["text"]

    assert str(other) in answer
    assert str(workspace) in waited
    assert door.end() == Exit.OK


def test_two_programs_share_a_home_and_each_keeps_to_its_workspace(open_door, workspace, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    one, two = (open_door("--workspace", str(path), "--checkpoints") for path in (workspace, other))

    for door, path in ((one, workspace), (two, other), (one, workspace)):
        door.ask("/write here.txt\nx")
        assert (path / "here.txt").exists()
        (path / "here.txt").unlink()

    assert [one.end(), two.end()] == [Exit.OK, Exit.OK]


def test_a_bad_line_is_answered_and_standard_output_holds_nothing_else(open_door, workspace):
    door = open_door("--workspace", str(workspace))
    door.write(b"nonsense\n")
    door.ask("/whoami")

    assert door.end() == Exit.OK
    assert sorted(door.seen[0]) == ["error"]
    assert door.seen[1] == {"done": True}
    assert [sorted(line) for line in door.seen[2:]] == [["buttons", "chat", "files", "text"], ["chat", "done"]]


def test_the_command_line_switches_checkpoints_for_chats_that_exist(open_door, workspace):
    for arguments, state in (((), "off"), (("--checkpoints",), "on"), ((), "off")):
        door = open_door("--workspace", str(workspace), *arguments)
        assert f"Checkpoints: {state}" in door.ask("/status")
        door.end()
    door = open_door("--workspace", str(workspace), "--checkpoints")
    door.ask("/checkpoints off")

    assert "Checkpoints: off" in door.ask("/status")
    door.end()
    door = open_door("--workspace", str(workspace), "--checkpoints")
    assert "Checkpoints: on" in door.ask("/status")
    door.end()


def test_without_a_workspace_a_sample_is_made_once_and_never_overwritten(open_door, gateway):
    door = open_door()
    assert "notes.md" in door.ask("$ ls")
    door.ask("$ rm notes.md; echo mine > greet.py")
    door.end()
    door = open_door()

    answer = door.ask("$ ls; cat greet.py")

    assert "notes.md" not in answer
    assert "mine" in answer
    door.end()


def test_a_directory_that_is_never_guarded_is_refused_at_the_start(gateway):
    result = gateway("chat", "--workspace", gateway.user_home, stdin="$ touch x\n")

    assert result.returncode == Exit.ERROR
    assert result.stderr.startswith(f"gateway: {gateway.user_home} cannot be guarded: ")
    assert os.listdir(gateway.user_home) == []


def test_a_chat_whose_workspace_is_not_configured_any_more_says_so_and_can_choose_another(
    open_door, gateway, workspace, tmp_path
):
    configure(gateway, f"workspaces: {{one: {{path: {workspace}}}, two: {{path: {tmp_path}}}}}\n")
    door = open_door()
    door.ask("$ pwd")
    door.end()
    configure(gateway, f"workspaces: {{three: {{path: {workspace}}}}}\n")
    door = open_door()

    assert "The workspace one is not configured any more" in door.ask("$ touch x")
    assert "Workspace: one" in door.ask("/status")
    assert "three" in door.ask("/workspace")
    assert "Now in three" in door.ask("/workspace three")
    assert str(workspace) in door.ask("$ pwd")
    assert door.end() == Exit.OK


def test_a_chat_whose_directory_is_gone_says_so_and_works_again_when_it_is_back(
    open_door, gateway, workspace, tmp_path
):
    configure(gateway, f"workspaces: {{one: {{path: {workspace}}}}}\n")
    door = open_door("--checkpoints")
    door.ask("$ rm notes.md")
    workspace.rename(tmp_path / "away")

    for text in ("$ touch x", "/rollback", "/new"):
        assert "cannot be a workspace" in door.ask(text)
    (tmp_path / "away").rename(workspace)

    assert "before terminal: rm notes.md" in door.ask("/rollback")
    assert door.end() == Exit.OK


def test_a_workspace_that_is_moved_in_the_configuration_begins_a_new_session(open_door, gateway, workspace, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    sessions = []
    for path in (workspace, other):
        configure(gateway, f"workspaces: {{one: {{path: {path}}}}}\n")
        door = open_door()
        assert str(path) in door.ask("$ pwd")
        sessions.append(door.ask("/status").splitlines()[0])
        door.end()

    assert sessions[0] != sessions[1]


def test_the_choice_of_a_workspace_outlasts_the_program_unless_the_command_line_names_one(
    open_door, gateway, workspace, tmp_path
):
    other = tmp_path / "other"
    other.mkdir()
    configure(gateway, f"default_workspace: one\nworkspaces: {{one: {{path: {workspace}}}, two: {{path: {other}}}}}\n")
    door = open_door()
    door.ask("/workspace two")
    door.end()

    door = open_door()
    assert str(other) in door.ask("$ pwd")
    door.end()
    door = open_door("--workspace", str(workspace))
    door.ask("/workspace two")
    door.end()
    door = open_door("--workspace", str(workspace))
    assert str(workspace) in door.ask("$ pwd")
    assert door.end() == Exit.OK


def test_everything_in_the_home_is_for_its_owner_alone(open_door, gateway, workspace):
    door = open_door("--workspace", str(workspace), "--checkpoints")
    door.ask("/write a.txt\nx")
    door.end()

    for directory, names, files in os.walk(gateway.home):
        for name in [*names, *files]:
            mode = os.lstat(os.path.join(directory, name)).st_mode
            assert stat.S_IMODE(mode) & 0o077 == 0, os.path.join(directory, name)


def test_pipes_are_answered_line_by_line(gateway, workspace):
    result = gateway("chat", "--workspace", str(workspace), stdin="$ cat notes.md\n\n$ pwd\n")

    assert (result.returncode, result.stderr) == (Exit.OK, "")
    assert result.stdout.index("one") < result.stdout.index(str(workspace))


def test_it_ends_quietly_when_nobody_reads_any_more(gateway, workspace):
    process = gateway.start(
        "chat",
        "--jsonl",
        "--workspace",
        str(workspace),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    )
    door = Door(process)
    door.ask("/whoami")
    assert process.stdout is not None
    process.stdout.close()
    door.send("/whoami")

    assert process.wait(timeout=20) == Exit.OK
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    process.stdin = None


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, Exit.OK), (signal.SIGINT, Exit.INTERRUPTED)])
def test_a_signal_interrupts_the_turn_stores_it_and_ends_the_program(open_door, workspace, begun, number, code):
    door = open_door("--workspace", str(workspace), "--checkpoints")
    door.send(f"$ echo > {begun.path}; sleep 600; touch late")
    begun.wait()

    door.process.send_signal(number)

    assert door.process.wait(timeout=10) == code
    assert not (workspace / "late").exists()
    again = open_door("--workspace", str(workspace), "--checkpoints")
    assert "interrupted" in again.ask("/status")
    again.end()


def test_started_to_outlive_its_terminal_it_does_and_its_commands_are_as_ever(gateway, workspace):
    process = gateway.start(
        "chat",
        "--jsonl",
        "--workspace",
        str(workspace),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    door = Door(process)
    door.ask("/whoami")

    process.send_signal(signal.SIGHUP)

    said = door.ask("$ sleep 600 & echo $! > pid")
    assert "left running" not in said
    pid = (workspace / "pid").read_text().strip()
    state = subprocess.run(["ps", "-o", "stat=", "-p", pid], capture_output=True, check=False, text=True).stdout
    assert state.strip()[:1] in {"Z", ""}
    assert "left running: pid" in door.ask("$ nohup sleep 600 > out 2>&1 & echo $! > pid")
    os.kill(int((workspace / "pid").read_text()), signal.SIGKILL)
    door.end()


def test_a_terminal_has_a_prompt_and_ends_with_ctrl_d(open_screen, workspace):
    screen = open_screen("--checkpoints")
    screen.press("/write new.txt\\\rhello\r")
    screen.shows("new.txt", times=2)
    screen.press("/diff\r")
    screen.shows("+hello")
    screen.press("\x04")

    assert screen.ends() == Exit.OK
    assert (workspace / "new.txt").read_text() == "hello"
    assert "\x1b[0;32m+hello" in screen.raw


def test_ctrl_c_stops_the_turn_and_not_the_program(open_screen, workspace, begun):
    screen = open_screen()
    screen.press(f"$ echo > {begun.path}; sleep 600; touch late\r")
    begun.wait()
    screen.shows("Ctrl-C stops")
    screen.press("\x03")
    screen.shows("Stopped")
    screen.press("$ echo still here | tr a-z A-Z\r")
    screen.shows("STILL HERE")
    screen.press("\x04")

    assert screen.ends() == Exit.OK
    assert not (workspace / "late").exists()


def test_what_was_typed_is_there_again_next_time(open_screen):
    for keys in ("$ echo first | tr a-z A-Z\r", "\x1b[A\r"):
        screen = open_screen()
        screen.press(keys)
        screen.shows("FIRST")
        screen.press("\x04")
        assert screen.ends() == Exit.OK


def test_a_turn_that_runs_when_the_terminal_closes_is_interrupted(open_screen, workspace, begun):
    screen = open_screen()
    screen.press(f"$ echo > {begun.path}; sleep 600; touch late\r")
    begun.wait()
    screen.press("\x04")

    assert screen.ends() == Exit.OK
    assert "shut down during this turn" in screen.text
    assert not (workspace / "late").exists()
