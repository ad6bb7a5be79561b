"""What the gateway says reaches people: in place, whole, readable, and as often as it has to be tried."""

import anyio
import pytest

from adapters.contract import Attachment, Button, Part, Place, SendFailed, Style
from tests.adapters.slack.limits import Refusal, shown_in
from tests.adapters.slack.server import Fault
from tests.adapters.slack.world import TEAM, buttons_of

MANY_LINES = "".join(f"+line {number} of a long diff\n" for number in range(5_000))


@pytest.fixture
def thread(slack) -> str:
    """A thread in a channel, as the rest of a chat's name."""
    slack.world.channel("C0GEN", "U0ANN")
    parent = slack.world.write("C0GEN", None, {"user": "U0ANN", "text": "begin"})
    return f"C0GEN/{parent['ts']}"


def shown(slack, thread: str):
    channel, _, ts = thread.partition("/")
    return slack.world.shown(channel, ts or None)


def words(slack, thread: str) -> list[str]:
    return ["\n".join(filter(None, map(shown_in, message.get("blocks", ())))) for message in shown(slack, thread)]


async def test_a_reply_is_marked_up_as_rich_text_and_shown_as_it_is(slack, connect, thread):
    async with connect() as far:
        await far.send(
            thread,
            *("😀 Restored ", Part("a1b2c3d4", Style.CODE), ": my_file_[1].py, <x>&.txt *a*\n"),
            *(Part("-one\n+two ```\n", Style.DIFF), Part("done", Style.BOLD), "\n"),
        )

    (sent,) = slack.called("chat.postMessage")
    assert sent["blocks"] == [
        {
            "type": "rich_text",
            "elements": [
                {
                    "type": "rich_text_section",
                    "elements": [
                        {"type": "text", "text": "😀 Restored "},
                        {"type": "text", "text": "a1b2c3d4", "style": {"code": True}},
                        {"type": "text", "text": ": my_file_[1].py, <x>&.txt *a*\n"},
                    ],
                },
                {"type": "rich_text_preformatted", "elements": [{"type": "text", "text": "-one\n+two ```"}]},
                {"type": "rich_text_section", "elements": [{"type": "text", "text": "done", "style": {"bold": True}}]},
            ],
        }
    ]
    assert sent["text"] == "😀 Restored a1b2c3d4: my_file_[1].py, &lt;x&gt;&amp;.txt *a*\n-one\n+two ```\ndone"
    assert (sent["unfurl_links"], sent["unfurl_media"]) == (False, False)


async def test_everything_of_a_reply_stays_in_its_thread(slack, connect, thread):
    files = (Attachment("a/b.diff", b"+x\n"), Attachment("c.txt", b"c"), Attachment("empty.txt", b""))
    buttons = tuple(Button(f"Button {number}", "/diff", f"t{number}") for number in range(30))
    async with connect() as far:
        await far.send(thread, "words " * 1000, files=files, buttons=buttons)

    everything = shown(slack, thread)
    assert len(everything) == len(slack.world.messages) - 1
    assert [[file["name"] for file in message.get("files", ())] for message in everything] == [
        *([[]] * (len(everything) - 2)),
        *(["a_b.diff"], ["c.txt"]),
    ]
    assert "empty.txt is empty." in "".join(words(slack, thread))
    assert [upload["snippet_type"] for upload in slack.answers.uploads.values()] == ["diff", None]


async def test_a_long_diff_has_a_readable_head_and_goes_along_whole(slack, connect, thread):
    async with connect() as far:
        await far.send(thread, "2 files\n", Part(MANY_LINES, Style.DIFF), buttons=(Button("Undo", "/undo", "t1"),))

    head, file = shown(slack, thread)
    assert words(slack, thread)[0].startswith("2 files\n\n+line 0 of a long diff\n")
    assert words(slack, thread)[0].endswith("… whole in reply.diff")
    assert slack.world.content[file["files"][0]["id"]] == b"2 files\n" + MANY_LINES.encode()
    assert [button["value"] for button in buttons_of(head)] == ["t1"]


@pytest.mark.parametrize("text", ["x" * 10_000, "<&>" * 2_000, "漢" * 3_000, "```\n" * 2_000])
async def test_long_and_odd_text_arrives_whole(slack, connect, thread, text):
    async with connect() as far:
        await far.send(thread, Part(text, Style.BLOCK))

    sent = [*words(slack, thread), *(content.decode() for content in slack.world.content.values())]
    assert text.replace("\n", "") in "".join(sent).replace("\n", "")
    assert slack.refused() == []


async def test_buttons_ask_before_they_do_what_cannot_be_seen(slack, connect, thread):
    buttons = (
        Button("Restore 1 " + "x" * 100, "/rollback 1", "t1", confirm="Restore to a1b2c3d? " + "y" * 400),
        Button("Diff 1", "/rollback diff 1", "t2"),
        Button("no token yet", "/status"),
    )
    async with connect() as far:
        await far.send(thread, "list", buttons=buttons)

    (message,) = shown(slack, thread)
    restore, diff = buttons_of(message)
    assert (restore["action_id"], restore["value"], len(restore["text"]["text"])) == ("t1", "t1", 75)
    assert restore["confirm"]["text"]["text"].startswith("Restore to a1b2c3d? y")
    assert "confirm" not in diff
    assert words(slack, thread) == ["list\nno token yet: /status"]


async def test_buttons_go_also_from_the_longest_message(slack, connect, thread):
    from tests.adapters.contract_suite import Reception

    async def spend(inbound):
        return Reception(spent=True)

    async with connect() as far:
        far.answer = spend
        await far.send(thread, "<" * 700, buttons=(Button("Run", "/approve 1", "t1"),))
        slack.world.press("U0ANN", "Run")
        await slack.until(lambda: slack.called("chat.update"))

    (message,) = shown(slack, thread)
    assert buttons_of(message) == []
    assert words(slack, thread) == ["<" * 700]


@pytest.mark.parametrize(
    ("refused", "reason", "again_s"),
    [
        (("ratelimited", 33), "too many messages", 33.0),
        (("internal_error", None), "internal_error", 5.0),
        (("", None), "ServerDisconnectedError", 5.0),
        (("not_in_channel", None), "the app is not in this channel; /invite it there (not_in_channel)", None),
        (("is_archived", None), "is_archived", None),
    ],
)
async def test_a_refusal_says_whether_to_try_again(slack, connect, thread, refused, reason, again_s):
    async with connect() as far:
        slack.fail("chat.postMessage", refused[0], retry_after=refused[1])
        with pytest.raises(SendFailed) as failed:
            await far.send(thread, "hello")

    assert (failed.value.reason, failed.value.retry_after_s) == (reason, again_s)


@pytest.mark.parametrize("error", ["missing_scope", "file_uploads_disabled"])
async def test_a_file_that_may_not_be_sent_holds_up_no_words(slack, connect, thread, error):
    needed = {"needed": "files:write"} if error == "missing_scope" else {}
    slack.faults.append(Fault("files.getUploadURLExternal", Refusal(error, **needed)))
    async with connect() as far:
        await far.send(thread, "1 file", files=(Attachment("a.diff", b"+x\n"), Attachment("b.diff", b"+y\n")))

    why = "missing_scope, needed: files:write" if needed else error
    assert words(slack, thread) == ["1 file", f"⚠ a.diff could not be sent: {why}", ""]
    assert [file["name"] for file in slack.world.files.values()] == ["b.diff"]


async def test_refused_blocks_go_as_plain_text_once(slack, connect, thread):
    async with connect() as far:
        slack.fail("chat.postMessage", "invalid_blocks")
        await far.send(thread, "see ", Part("<x>&.txt", Style.CODE))
        slack.fail("chat.postMessage", "invalid_blocks", times=2)
        with pytest.raises(SendFailed, match="invalid_blocks"):
            await far.send(thread, "again")

    (given,) = slack.called("chat.postMessage")
    assert (given["text"], given["mrkdwn"], "blocks" in given) == ("see &lt;x&gt;&amp;.txt", False, False)
    assert [message["thread_ts"] for message in shown(slack, thread)] == [thread.partition("/")[2]]
    assert len(slack.refused()) == 3


async def test_a_missing_scope_is_said_with_what_to_do(slack, connect, thread, caplog):
    slack.faults.append(Fault("chat.postMessage", Refusal("missing_scope", needed="chat:write")))
    async with connect() as far:
        with pytest.raises(SendFailed) as failed:
            await far.send(thread, "hello")

    assert failed.value.retry_after_s == 60.0
    assert failed.value.reason.startswith(
        "Slack refuses a call because slack.bot_token lacks a scope (missing_scope, needed: chat:write). On the app's"
        " page OAuth & Permissions add it and install the app again;"
    )
    assert f"a reply waits: {failed.value.reason}" in caplog.messages


async def test_a_refused_token_is_no_loss_of_the_reply(slack, connect, thread):
    async with connect() as far:
        slack.bot_token = "xoxb-another"
        with pytest.raises(SendFailed) as failed:
            await far.send(thread, "hello")

    assert failed.value.retry_after_s == 60.0
    assert "TAKEBACK_SLACK__BOT_TOKEN_FILE" in failed.value.reason
    assert "xoxb-" not in failed.value.reason


async def test_a_reply_goes_on_where_it_stopped(slack, connect, thread):
    text = "\n\n".join(f"{number} " + "word " * 100 for number in range(20))
    file = Attachment("all.diff", b"+x\n")
    async with connect() as far:
        slack.fail("files.completeUploadExternal", "internal_error")
        with pytest.raises(SendFailed):
            await far.send(thread, text, files=(file,))
        before = len(slack.called("chat.postMessage"))
        await far.send(thread, text, files=(file,))

    assert before == len(slack.called("chat.postMessage")) > 1
    assert len(slack.world.content) == 1


async def test_an_upload_that_is_lost_on_the_way_is_tried_again(slack, connect, thread):
    async with connect() as far:
        slack.fail("files.getUploadURLExternal")
        with pytest.raises(SendFailed) as failed:
            await far.send(thread, files=(Attachment("a.txt", b"a"),))

    assert failed.value.retry_after_s == 5.0


async def test_the_last_replies_are_sent_after_the_adapter_has_stopped(slack, connect, thread):
    async with connect() as far:
        pass
    assert not far.adapter.connected
    await far.send(thread, "the last word")

    assert words(slack, thread) == ["the last word"]


class TestProgress:
    """What goes on is shown at Slack's pace, and nothing of it stays."""

    @pytest.fixture(autouse=True)
    def _quick(self, monkeypatch):
        from adapters.slack import progress

        monkeypatch.setattr(progress.Message, "every_s", 0.1)

    @pytest.fixture
    def place(self, thread) -> Place:
        return Place("slack", f"{TEAM}/{thread}")

    async def test_one_message_is_changed_and_deleted_in_the_end(self, slack, connect, thread, place):
        async with connect() as far:
            await far.adapter.progress(place, "running: make")
            await slack.until(lambda: words(slack, thread) == ["running: make\n…"])
            for number in range(50):
                await far.adapter.progress(place, f"running: make\n<line {number}>")
            await slack.until(lambda: words(slack, thread) == ["running: make\n\n<line 49>\n…"])
            await far.adapter.progress(place, "")
            await slack.until(lambda: words(slack, thread) == [])

        assert len(slack.called("chat.postMessage")) == 1
        assert len(slack.called("chat.update")) <= 2
        # Whether it is gone is not known when the adapter stops at that moment.
        assert set(slack.refused()) <= {"chat.delete: message_not_found: "}

    async def test_it_waits_when_it_is_asked_to_and_the_reply_comes_all_the_same(self, slack, connect, thread, place):
        async with connect() as far:
            await far.adapter.progress(place, "running: make")
            await slack.until(lambda: shown(slack, thread))
            slack.fail("chat.update", "ratelimited", retry_after=33)
            await far.adapter.progress(place, "running: more")
            await slack.until(slack.refused)
            for number in range(5):
                await far.adapter.progress(place, f"running: {number}")
                await anyio.lowlevel.checkpoint()
            await far.adapter.progress(place, "")
            await far.send(thread, "done")
            await slack.until(lambda: words(slack, thread) == ["done"])

        assert len(slack.refused()) == 1
        assert slack.called("chat.update") == []

    async def test_a_message_that_somebody_deleted_is_not_missed(self, slack, connect, thread, place):
        async with connect() as far:
            await far.adapter.progress(place, "running: make")
            (message,) = await slack.until(lambda: shown(slack, thread))
            del slack.world.messages["C0GEN", message["ts"]]
            await far.adapter.progress(place, "running: more")
            await slack.until(slack.refused)
            await far.adapter.progress(place, "")
            await far.send(thread, "done")

        assert words(slack, thread) == ["done"]

    async def test_what_is_shown_goes_when_the_adapter_stops(self, slack, connect, thread, place):
        async with connect() as far:
            await far.adapter.progress(place, "running: make")
            await slack.until(lambda: shown(slack, thread))

        assert shown(slack, thread) == []
