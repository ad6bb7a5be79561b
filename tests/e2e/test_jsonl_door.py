"""The machine's door: every line that goes in and comes out, and every way the conversation can end."""

import base64
import json
import os
import signal
import subprocess

import pytest

from tests.e2e.homes import tables
from tests.e2e.program import Program
from tests.e2e.scene import Scene
from tests.e2e.trees import differing

MB = 1024 * 1024


def test_reply_and_done_have_exactly_the_documented_shape(scene: Scene, program: Program) -> None:
    scene.edit("a.py", "one\n")

    changed = program.exchange(b'{"text": "/write a.py\\ntwo\\n", "chat": "main", "user": "ann"}')
    previewed = program.exchange(b'{"text": "/rollback diff 1", "chat": "main"}')
    default = program.exchange(b'{"text": "/whoami"}')

    [reply, done] = changed
    assert set(reply) == {"chat", "text", "files", "buttons"}
    assert reply["chat"] == "main"
    assert reply["text"].startswith("write_file: a.py written\n")
    assert reply["files"] == []
    assert [button["label"] for button in reply["buttons"]] == ["Diff", "Undo"]
    assert all(set(button) == {"label", "command"} for button in reply["buttons"])
    assert done == {"chat": "main", "done": True}
    assert [said["chat"] for said in default] == ["local", "local"]
    assert previewed[0]["files"] == []
    assert program.end() == 0


def test_every_line_that_comes_out_is_one_ascii_object(scene: Scene, program: Program) -> None:
    scene.edit("漢字\udcff", "\u2028\u0085\0\x1b[31m\n")
    program.ask("$ rm -- *; printf 'r\\303\\251sum\\303\\251 \\377\\000\\033[31m\\r\\n'")
    program.ask("/rollback diff 1")
    program.ask("/rollback 1")

    raw = subprocess.run(
        scene.line("chat", "--jsonl", "--workspace", str(scene.project), "--checkpoints"),
        input=b'{"text": "/rollback"}\n{"text": "$ cat *"}\n',
        capture_output=True,
        check=True,
        env=scene.environment,
        cwd=scene.user_home,
    ).stdout

    assert raw.isascii()
    assert [sorted(json.loads(line)) for line in raw.split(b"\n")[:-1]] == [
        ["buttons", "chat", "files", "text"],
        ["chat", "done"],
    ] * 2


def test_long_output_comes_whole_as_a_file(scene: Scene, program: Program) -> None:
    program.ask("$ seq 5000 > numbers.txt")

    answer = program.ask("$ cat numbers.txt")
    diff = program.ask("/diff #1")

    assert "".join(answer.files.values()).split() == [str(number) for number in range(1, 5001)]
    assert len(answer.text) < 4000
    [(name, whole)] = diff.files.items()
    assert name == "turn-1.diff"
    assert whole.count("\n+") >= 5000


def test_diff_of_a_file_that_is_no_text_comes_as_a_patch_in_base64(scene: Scene, program: Program) -> None:
    original = b"".join(b"caf\xe9 \x1b[%dm\r\n" % number for number in range(200))
    scene.edit("latin.txt", original)
    program.ask("$ sed -i s/caf/the/ latin.txt")

    program.send("/diff")
    reply = program.hear()

    assert "-caf\\xe9 \\x1b[0m" in reply["text"]
    [file] = reply["files"]
    assert file["encoding"] == "base64"
    patch = base64.b64decode(file["content"])
    subprocess.run(["git", "apply", "--reverse", "-"], cwd=scene.project, input=patch, check=True)
    assert (scene.project / "latin.txt").read_bytes() == original


BAD_LINES: tuple[tuple[bytes, str | None, str], ...] = (
    (b"nonsense", None, "not JSON"),
    (b'{"text": "x"', None, "not JSON"),
    (b"[]", None, "must be an object"),
    (b'"text"', None, "must be an object"),
    (b"null", None, "must be an object"),
    (b"NaN", None, "must be an object"),
    (b"{}", None, '"text" is missing'),
    (b'{"text": null}', None, '"text" is missing or is not a string'),
    (b'{"text": 1}', None, '"text" is missing or is not a string'),
    (b'{"text": ["$ ls"]}', None, '"text" is missing or is not a string'),
    (b'{"text": {"a": 1}, "chat": "c"}', "c", '"text" is missing or is not a string'),
    (b'{"chat": "c"}', "c", '"text" is missing'),
    (b'{"text": "$ touch x", "workspace": "/"}', None, "unknown field 'workspace'"),
    (b'{"text": "$ touch x", "chat": "c", "Text": "y"}', "c", "unknown field 'Text'"),
    (b'{"text": "$ touch x", "chat": 5}', None, '"chat" must be a string'),
    (b'{"text": "$ touch x", "chat": ""}', None, '"chat" must be a string'),
    (b'{"text": "$ touch x", "chat": "' + b"c" * 201 + b'"}', None, '"chat" must be a string'),
    (b'{"text": "$ touch x", "user": null}', None, '"user" must be a string'),
    (b'{"text": "$ touch \xff"}', None, "not UTF-8"),
    (b"[" * 100_000, None, "nested too deeply"),
    (b"\0", None, "not JSON"),
)


def test_unusable_line_is_answered_and_the_program_goes_on(scene: Scene, program: Program) -> None:
    for line, chat, says in BAD_LINES:
        error, done = program.exchange(line)
        named = {} if chat is None else {"chat": chat}
        assert done == {**named, "done": True}, line[:80]
        assert says in error.pop("error"), line[:80]
        assert error == named, line[:80]

    assert program.ask("$ echo goes on | tr a-z A-Z").text.startswith("GOES ON")
    assert os.listdir(scene.project) == []
    assert program.end() == 0


def test_line_ends_blank_lines_and_a_byte_order_mark_do_not_matter(scene: Scene, program: Program) -> None:
    program.write(b'\xef\xbb\xbf{"text": "$ echo one"}\r\n\r\n\n   \n\t\r\n {"text":\t"$ echo two"} \r\n')
    assert program.answer().lines[0] == "one"
    assert program.answer().lines[0] == "two"
    program.write(b'{"text": "$ echo last"}')  # without a newline at the end of the input

    assert program.end() == 0
    assert program.answer().lines[0] == "last"
    assert len(program.heard) == 6


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\t \r\n"])
def test_empty_message_is_done_without_a_turn(scene: Scene, program: Program, text: str) -> None:
    assert program.ask(text).replies == ()
    assert tables(scene.home)["turns"] == []


def test_huge_message_is_written_exactly(scene: Scene, program: Program) -> None:
    content = "".join(f"{number:07d} é漢\r\n" for number in range(500_000))

    answer = program.ask(f"/write huge.txt\n{content}")

    assert answer.text.startswith("write_file: huge.txt written")
    assert (scene.project / "huge.txt").read_bytes() == content.encode()


def test_line_beyond_the_limit_is_refused_and_skipped(scene: Scene, program: Program) -> None:
    program.write(b'{"text": "/write huge.txt\\n')
    for _ in range(65):
        program.write(b"x" * MB)
    program.write(b'"}\n')

    assert "too long" in program.hear()["error"]
    assert program.hear() == {"done": True}
    assert program.ask("$ ls").lines[0] == "[no output]"


def test_content_is_written_exactly_as_it_stands(scene: Scene, program: Program) -> None:
    contents = (
        "",
        "\n",
        "no newline",
        "crlf\r\nlf\n",
        "\n\nleading",
        "trailing  \n\n\n",
        "\ttab",
        "é漢\U0001f600\ufeff",
        "/undo\n",
        "\0\x1b",
    )
    for number, content in enumerate(contents):
        program.ask(f"/write {number}\n{content}")

    assert [(scene.project / str(number)).read_bytes() for number in range(len(contents))] == [
        content.encode() for content in contents
    ]


@pytest.mark.parametrize("where", ["content", "path", "command", "chat", "user", "nothing known"])
def test_lone_surrogate_ends_nothing(scene: Scene, program: Program, where: str) -> None:
    line = {
        "content": rb'{"text": "/write a.py\n\ud800"}',
        "path": rb'{"text": "/write \ud800\nx"}',
        "command": rb'{"text": "$ echo \ud800 > a.py"}',
        "chat": rb'{"text": "$ echo x > a.py", "chat": "\ud800"}',
        "user": rb'{"text": "/whoami", "user": "\udfff"}',
        "nothing known": rb'{"text": "/rollback \ud83d"}',
    }[where]

    said = program.exchange(line)

    assert said[-1]["done"]
    assert scene.exists("a.py") == (where == "chat")
    assert program.ask("$ echo goes on | tr a-z A-Z").text.startswith("GOES ON")
    assert program.end() == 0


def test_status_of_another_chat_comes_before_a_long_command_ends(scene: Scene, program: Program) -> None:
    program.send("$ sleep 3; echo slept | tr a-z A-Z", chat="slow")
    program.send("/status", chat="quick")

    first = program.answer("quick")
    while program.heard[-1].get("text", "").startswith("⏳"):
        program.hear()

    assert "Running: nothing" in first.text
    assert [said["chat"] for said in program.heard] == ["quick", "quick"]
    assert "SLEPT" in program.answer("slow").text


def test_command_in_its_own_chat_is_answered_while_it_runs(scene: Scene, program: Program) -> None:
    begun, gate = scene.waypoint("begun"), scene.waypoint("gate")
    program.send(f"$ {begun.reach}; {gate.stop_here}")
    begun.wait()

    program.send("/status")

    assert program.hear()["text"].splitlines()[-1].startswith("Running: turn #1 for ")
    assert program.hear() == {"chat": "local", "done": True}
    gate.let_pass()
    program.hear()
    assert program.hear() == {"chat": "local", "done": True}


def test_end_of_input_lets_everything_said_so_far_be_carried_out(scene: Scene, program: Program) -> None:
    for number in range(5):
        program.send(f"/write {number}\n{number}", chat=f"chat-{number % 2}")

    assert program.end() == 0
    assert sum(1 for said in program.heard if said.get("done")) == 5
    assert sorted(os.listdir(scene.project)) == ["0", "1", "2", "3", "4"]


def test_end_of_input_without_a_message_ends_it(scene: Scene, program: Program) -> None:
    assert program.end() == 0
    assert program.heard == []


def test_reader_that_goes_away_ends_it_without_a_word(scene: Scene, program: Program) -> None:
    scene.log_may_hold = "a reply was given up"
    begun = scene.waypoint("begun")
    program.send(f"$ {begun.reach}; sleep 600; touch late")
    begun.wait()
    assert program.process.stdout is not None
    program.process.stdout.close()
    program.send("/status")

    assert program.wait() == 0
    assert scene.living() == {}
    assert not scene.exists("late")
    again = scene.start()
    assert again.ask("/status").line("Last turn:").startswith("#1 interrupted")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 0), (signal.SIGHUP, 0), (signal.SIGINT, 130)], ids=["TERM", "HUP", "INT"]
)
def test_signal_interrupts_the_turn_says_so_and_ends_it(
    scene: Scene, program: Program, number: signal.Signals, code: int
) -> None:
    begun = scene.waypoint("begun")
    scene.edit("a.py", "one\n")
    before = scene.tree()
    program.send(f"$ echo two > a.py; {begun.reach}; sleep 600; echo late > late.py")
    begun.wait()

    program.signal(number)

    said = program.answer()
    assert program.end() == code
    assert said.text.startswith("⏸ Takeback was shut down during this turn")
    assert scene.living() == {}
    again = scene.start()
    status = again.ask("/status")
    assert status.line("Last turn:").startswith("#1 interrupted: $ echo two > a.py")
    assert status.line("Running:") == "nothing"
    undone = again.ask("/undo")
    assert undone.line("Restored:") == "a.py"
    assert differing(before, scene.tree()) == set()


def test_nothing_half_done_is_repeated_after_a_signal(scene: Scene, program: Program) -> None:
    begun = scene.waypoint("begun")
    program.send(f"$ echo once >> log.txt; {begun.reach}; sleep 600")
    begun.wait()
    program.send("$ echo queued >> log.txt")
    program.ask("/status", chat="other")  # so the queued one has been taken in
    program.signal(signal.SIGTERM)
    assert program.wait() == 0

    again = scene.start()
    answer = again.ask("$ echo third >> log.txt")

    assert scene.read("log.txt").split() == ["once", "queued", "third"]
    assert answer.text
