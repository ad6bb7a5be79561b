"""The real program does a whole job over Telegram; see `tests.adapters.telegram.job` for what happens in it."""

import re
from pathlib import Path

from tests.adapters.telegram.job import ANN, Job, play, transcript
from tests.adapters.telegram.parameters import Refusal
from tests.test_docs import block, neutral

BEFORE = {
    "docs/guide.md": "guide\n",
    "greet.py": 'def greet(name):\n    return f"Hello, {name}!"\n',
    "notes.md": "# Notes\n",
}
NUMBERS = "".join(f"{number}\n" for number in range(1, 5001))
AFTER = {
    "greet.py": BEFORE["greet.py"].replace("Hello", "Goodbye"),
    "notes.md": "# Notes\n",
    "numbers.txt": NUMBERS,
}


async def test_a_person_does_a_whole_job(tmp_path: Path) -> None:
    """One test, because the job takes its time: everything below holds of it."""
    job = Job(tmp_path)

    await play(job)

    files_and_turns_go_back_and_forth(job)
    a_stranger_is_admitted_by_a_code(job)
    a_long_diff_comes_as_a_file(job)
    what_was_asked_while_the_program_was_dead_is_answered_once(job)
    a_button_of_before_the_kill_still_works_and_every_press_is_answered(job)
    nothing_that_was_sent_is_refused_and_nothing_stays_unconfirmed(job)
    the_menu_and_the_draft_are_there(job)
    the_program_ends_in_order_and_complains_of_nothing(job)
    the_readme_shows_this_job(job)


def files_and_turns_go_back_and_forth(job: Job) -> None:
    assert job.seen["changed"] == AFTER
    assert job.seen["restored files"] == BEFORE
    assert job.seen["redone files"] == AFTER
    assert "↩ Undid 3 turns." in job.seen["restored"]
    assert "↪ Brought back 3 turns." in job.seen["redone"]


def a_stranger_is_admitted_by_a_code(job: Job) -> None:
    assert job.seen["welcome"].startswith("✅ You are admitted.")


def a_long_diff_comes_as_a_file(job: Job) -> None:
    name, content = job.api.called("sendDocument")[0]["document"]

    assert name.endswith(".diff")
    assert content.count(b"\n+") > 5000
    assert b"-guide\n" in content


def what_was_asked_while_the_program_was_dead_is_answered_once(job: Job) -> None:
    assert job.seen["killed"] == -9
    assert [text.split()[:5] for text in job.seen["after the kill"]] == [
        ["⏸", "Takeback", "was", "ended", "during"],
        ["Checkpoints", "are", "on", "for", "this"],
    ]


def a_button_of_before_the_kill_still_works_and_every_press_is_answered(job: Job) -> None:
    assert job.seen["restored"].startswith("✅ Restored to checkpoint ")
    assert len(job.api.called("answerCallbackQuery")) == 2
    assert job.api.world.queries == {}


def nothing_that_was_sent_is_refused_and_nothing_stays_unconfirmed(job: Job) -> None:
    assert [call for call in job.api.calls if isinstance(call.outcome, Refusal)] == []
    assert job.api.world.updates == []


def the_menu_and_the_draft_are_there(job: Job) -> None:
    assert "rollback" in {command["command"] for command in job.api.world.commands["all_private_chats"]}
    assert {draft["chat_id"] for draft in job.api.called("sendMessageDraft")} == {ANN}


def the_program_ends_in_order_and_complains_of_nothing(job: Job) -> None:
    assert job.seen["exit code"] == 0
    assert re.findall(r"^\S+ (?:warning|error|critical) .*|^Traceback .*", job.log, re.MULTILINE) == []


def the_readme_shows_this_job(job: Job) -> None:
    def same(text: str) -> str:
        return re.sub(r"\b[A-Z0-9]{8}\b", "CODE", neutral(text, str(job.app)))

    assert same(transcript(job)) == same(block("telegram"))
