"""The real program does a whole job over a Slack that nobody here wrote; see `tests.adapters.slack.job`."""

import re
from pathlib import Path

import pytest

from tests.adapters.slack.job import Job, play
from tests.adapters.slack.local_slack import ANN, buttons, words

BEFORE = {"docs/guide.md": "guide\n", "greet.py": 'def greet(name):\n    return f"Hello, {name}!"\n'}
NUMBERS = "".join(f"{number}\n" for number in range(1, 5001))
AFTER = {"greet.py": BEFORE["greet.py"].replace("Hello", "Goodbye"), "numbers.txt": NUMBERS}


@pytest.mark.parametrize("mode", ["socket", "http"])
async def test_a_person_does_a_whole_job(tmp_path: Path, mode: str) -> None:
    """One test for each mode, because the job takes its time: everything below holds of it."""
    job = Job(tmp_path, mode)

    await play(job)

    files_and_turns_go_back_and_forth(job)
    everything_stays_in_its_thread(job)
    a_long_diff_comes_as_a_file(job)
    the_program_was_killed_and_says_so(job)
    what_is_no_command_was_ignored(job)
    her_page_shows_where_things_stand(job)
    the_program_ends_in_order_and_complains_of_nothing(job)


def files_and_turns_go_back_and_forth(job: Job) -> None:
    assert job.seen["changed files"] == AFTER
    assert job.seen["restored files"] == BEFORE
    assert job.seen["redone files"] == AFTER
    assert "↩ Undid 3 turns." in words(job.seen["restored"])
    assert "↪ Brought back 3 turns." in words(job.seen["redone"])


def everything_stays_in_its_thread(job: Job) -> None:
    assert job.seen["in the channel"] == [job.seen["slash"]]
    assert f"User: {ANN}" in words(job.seen["slash"])
    assert [button["text"]["text"] for button in buttons(job.seen["changed"])] == ["Diff", "Undo"]


def a_long_diff_comes_as_a_file(job: Job) -> None:
    files = [file for message in job.seen["in the thread"] for file in message.get("files", ())]
    stored = {path.read_bytes() for path in (job.base / "slack-files").rglob("*") if path.is_file()}

    assert [file["name"].endswith(".diff") for file in files] == [True]
    assert any(content.count(b"\n+") > 5000 and b"-guide\n" in content for content in stored)


def the_program_was_killed_and_says_so(job: Job) -> None:
    assert job.seen["killed"] == -9
    assert "/retry runs it anew" in words(job.seen["after the kill"])


def what_is_no_command_was_ignored(job: Job) -> None:
    assert not [message for message in job.seen["in the thread"] if "nice work" in words(message)]


def her_page_shows_where_things_stand(job: Job) -> None:
    assert re.search(rf"^  T0TEAM/C0GEN/[0-9.]+ in app \({job.app}\): turn #\d+ ", job.seen["page"], re.MULTILINE)
    assert re.search(r"^Checkpoints: [1-9]\d* in all", job.seen["page"], re.MULTILINE)


def the_program_ends_in_order_and_complains_of_nothing(job: Job) -> None:
    assert job.seen["exit code"] == 0
    assert re.findall(r"^\S+ (?:warning|error|critical) .*|^Traceback .*", job.log, re.MULTILINE) == []
    assert [entry for entry in job.seen["log"] if entry["kind"] == "web_api" and "->" in entry["summary"]] == []
