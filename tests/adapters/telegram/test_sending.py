"""What the gateway says reaches people: in place, whole, readable, and as often as it has to be tried."""

import pytest

from adapters.contract import Attachment, Button, Part, SendFailed, Style
from tests.adapters.telegram.bot_api import TOKEN, Fault
from tests.adapters.telegram.parameters import Refusal, bad

MANY_LINES = "".join(f"+line {number} of a long diff\n" for number in range(5_000))


@pytest.fixture
def ann(api):
    person = api.world.person(42, "Ann")
    api.world.private(person)
    return person


async def test_a_reply_is_marked_up_by_entities_and_shown_as_it_is(api, connect, ann):
    async with connect() as far:
        await far.send(
            42,
            *("😀 Restored ", Part("a1b2c3d4", Style.CODE), ": my_file_[1].py, <x>&.txt *a*\n"),
            *(Part("-one\n+two ```\n", Style.DIFF), Part("done", Style.BOLD), "\n"),
        )

    (sent,) = api.called("sendMessage")
    assert sent["text"] == "😀 Restored a1b2c3d4: my_file_[1].py, <x>&.txt *a*\n-one\n+two ```\ndone"
    assert sent["entities"] == [
        {"type": "code", "offset": 12, "length": 8},
        {"type": "pre", "offset": 51, "length": 13, "language": "diff"},
        {"type": "bold", "offset": 65, "length": 4},
    ]
    assert "parse_mode" not in sent
    assert sent["link_preview_options"] == {"is_disabled": True}


async def test_a_reply_in_a_topic_stays_there_and_names_what_it_answers(api, connect, ann):
    forum = api.world.group(-200, topics=(7,))
    async with connect() as far:
        asked = api.world.say(ann, "/status", chat=forum, topic=7)
        (inbound,) = await far.heard()
        await far.send(inbound.place.chat, "fine", reply_to=inbound.event_id)
        del api.world.messages[-200, asked["message_id"]]
        await far.send(inbound.place.chat, "still fine", reply_to=inbound.event_id)

    assert api.world.texts(-200, 7) == ["fine", "still fine"]
    assert api.called("sendMessage")[0]["reply_parameters"]["message_id"] == asked["message_id"]


async def test_a_private_reply_quotes_nothing(api, connect, ann):
    async with connect() as far:
        api.world.say(ann, "hello")
        (inbound,) = await far.heard()
        await far.send(42, "hi", reply_to=inbound.event_id)

    assert "reply_parameters" not in api.called("sendMessage")[0]


async def test_a_long_diff_has_a_readable_head_and_goes_along_whole(api, connect, ann):
    async with connect() as far:
        await far.send(42, "2 files\n", Part(MANY_LINES, Style.DIFF), buttons=(Button("Undo", "/undo", "t1"),))

    head, whole = api.called("sendMessage"), api.called("sendDocument")
    assert len(head) == len(whole) == 1
    assert head[0]["text"].startswith("2 files\n+line 0 of a long diff\n")
    assert head[0]["text"].endswith("\n… whole in reply.diff")
    assert whole[0]["document"] == ("reply.diff", b"2 files\n" + MANY_LINES.encode())
    assert [*api.world.shown(42)[0]["reply_markup"]["inline_keyboard"]] == [[{"text": "Undo", "callback_data": "t1"}]]


async def test_a_text_of_several_messages_loses_nothing(api, connect, ann):
    words = "\n\n".join(f"{number} " + "😀word " * 60 for number in range(30))
    async with connect() as far:
        await far.send(42, words)

    sent = [given["text"] for given in api.called("sendMessage")]
    assert 1 < len(sent) <= 4
    assert "".join("".join(sent).split()) == "".join(words.split())
    assert all(text[0].isdigit() for text in sent)


async def test_a_line_of_ten_thousand_characters_arrives(api, connect, ann):
    async with connect() as far:
        await far.send(42, Part("x" * 10_000, Style.BLOCK))

    assert "".join(given["text"] for given in api.called("sendMessage")) == "x" * 10_000


async def test_a_file_carries_a_short_text_as_its_caption(api, connect, ann):
    file = Attachment('a"b/c\n.diff', b"+x\n")
    async with connect() as far:
        await far.send(42, "1 file, ", Part("+1/-0", Style.CODE), files=(file,))

    (sent,) = api.called("sendDocument")
    assert sent["document"] == ("a_b_c_.diff", b"+x\n")
    assert (sent["caption"], sent["caption_entities"]) == (
        "1 file, +1/-0",
        [{"type": "code", "offset": 8, "length": 5}],
    )
    assert api.called("sendMessage") == []


async def test_files_that_telegram_does_not_take_are_said(api, connect, ann):
    files = (Attachment("empty.txt", b""), Attachment("huge.bin", bytes(50 * 1024 * 1024 + 1)), Attachment("a", b"1"))
    async with connect() as far:
        await far.send(42, "x" * 2000, files=files)

    assert api.world.texts(42) == [
        "x" * 2000 + "\nempty.txt is empty.\nhuge.bin is too large for Telegram (50 MB).",
        "",
    ]


async def test_a_long_output_is_folded(api, connect, ann):
    async with connect() as far:
        await far.send(42, Part("a\n" * 30, Style.BLOCK), Part("b\n", Style.BLOCK))

    assert [entity["type"] for entity in api.called("sendMessage")[0]["entities"]] == ["expandable_blockquote", "pre"]


async def test_refused_markup_goes_as_plain_text_once(api, connect, ann):
    async with connect() as far:
        api.fail("sendMessage", 400, "Bad Request: can't parse entities: something new")
        await far.send(42, "see ", Part("code", Style.CODE))

    assert [given.get("entities") for given in api.called("sendMessage")] == [None]
    assert api.world.texts(42) == ["see code"]


@pytest.mark.parametrize(
    "files",
    [(Attachment("a.diff", b"+x\n"),), (Attachment("a.diff", b"+x\n"), Attachment("b.diff", b"+y\n"))],
    ids=["with its words", "by itself"],
)
async def test_a_refused_file_takes_no_words_along(api, connect, ann, files):
    api.world.group(-100)
    async with connect() as far:
        api.fail("sendDocument", 400, "Bad Request: not enough rights to send documents to the chat", times=len(files))
        await far.send(-100, "1 file, ", Part("+1/-0", Style.CODE), files=files)

    said = "\n".join(api.world.texts(-100))
    for file in files:
        assert f"⚠ {file.name} could not be sent: Bad Request: not enough rights to send documents to the chat" in said
    assert said.startswith("1 file, +1/-0\n⚠ ")
    assert api.called("sendMessage")[0]["entities"] == [{"type": "code", "offset": 8, "length": 5}]


async def test_what_telegram_took_is_not_sent_again_when_its_word_on_it_is_not_understood(api, connect, ann):
    strange = {"paid_media": {"star_count": 1, "paid_media": [{"type": "of a later version"}]}}
    asked = {**api.world.say(ann, "look"), **strange}
    api.world.messages[42, asked["message_id"]] = asked
    async with connect() as far:
        (inbound,) = await far.heard()
        api.world.group(-100)
        api.world.messages[-100, asked["message_id"]] = {**asked, "chat": api.world.chats[-100]}
        await far.send(-100, "done", reply_to=inbound.event_id)

    assert api.world.texts(-100) == ["done"]


async def test_text_that_is_no_text_arrives_as_something(api, connect, ann):
    async with connect() as far:
        await far.send(42, "half \ud83d of a pair, NUL \0, \ud83d\ude00\r\n")

    assert api.world.texts(42) == ["half \ufffd of a pair, NUL \ufffd, 😀"]


async def test_buttons_carry_their_tokens_in_rows_of_a_phones_width(api, connect, ann):
    buttons = tuple(
        Button(f"{what} {number}", "/rollback", f"{what[0]}{number}")
        for number in range(1, 61)
        for what in ("Diff", "Restore")
    )
    async with connect() as far:
        await far.send(42, "list", buttons=buttons)
        await far.send(42, "typed", buttons=(Button("Undo", "/undo #1"),))

    keyboards = [
        [[key["callback_data"] for key in row] for row in message["reply_markup"]["inline_keyboard"]]
        for message in api.world.shown(42)
        if "reply_markup" in message
    ]
    assert keyboards[0][:2] == [["D1", "R1"], ["D2", "R2"]]
    assert [sum(map(len, rows)) for rows in keyboards] == [100, 20]
    assert api.world.texts(42)[-1] == "typed\nUndo: /undo #1"


async def test_flooding_one_chat_is_told_with_its_wait_and_holds_up_no_other(api, connect, ann):
    api.world.private(api.world.person(43, "Ben"))
    async with connect() as far:
        api.fail("sendMessage", 429, "Too Many Requests: retry after 33", retry_after=33)
        with pytest.raises(SendFailed) as caught:
            await far.send(42, "one")
        await far.send(43, "two")

    assert caught.value.retry_after_s == 33.0
    assert len(api.refused("sendMessage")) == 1
    assert api.world.texts(43) == ["two"]


async def test_the_next_attempt_goes_on_where_the_last_one_stopped(api, connect, ann):
    file = Attachment("whole.txt", b"whole")
    async with connect() as far:
        api.fail("sendDocument", 429, "Too Many Requests: retry after 1", retry_after=1)
        with pytest.raises(SendFailed):
            await far.send(42, "x" * 2000, files=(file,))
        await far.send(42, "x" * 2000, files=(file,))
        await far.send(42, "x" * 2000, files=(file,))

    assert [message.get("text", "a file") for message in api.world.shown(42)] == ["x" * 2000, "a file"] * 2


@pytest.mark.parametrize(
    ("fault", "reason", "retry_after_s"),
    [
        ((), "ServerDisconnectedError: Server disconnected", 5.0),
        ((502, "Bad Gateway"), "Bad Gateway", 5.0),
        ((403, "Forbidden: bot was kicked from the group chat"), "Forbidden: bot was kicked from the group chat", None),
        ((400, "Bad Request: TOPIC_CLOSED"), "Bad Request: TOPIC_CLOSED", None),
        ((413, "Request Entity Too Large"), "Request Entity Too Large", None),
        ((429, "Too Many Requests"), "Too Many Requests", 5.0),
    ],
)
async def test_a_failure_says_whether_it_is_of_use_to_try_again(api, connect, ann, fault, reason, retry_after_s):
    async with connect() as far:
        api.fail("sendMessage", *fault)
        with pytest.raises(SendFailed) as caught:
            await far.send(42, "hello")

    assert (caught.value.reason, caught.value.retry_after_s) == (reason, retry_after_s)


def test_no_reason_holds_the_address_that_was_called():
    from aiogram.exceptions import TelegramNetworkError
    from aiogram.methods import GetMe

    from adapters.telegram.client import diagnose, send_failure

    error = TelegramNetworkError(GetMe(), f"TooManyRedirects: 0, url='https://example.org/bot{TOKEN}/getMe'")

    assert send_failure(error).reason == "TooManyRedirects: 0, …"
    assert diagnose(error).failure.reason == "Telegram cannot be reached: TooManyRedirects: 0, …"


async def test_a_group_that_moved_is_followed(api, connect, ann):
    api.world.group(-5, kind="group")
    api.world.group(-1005)
    api.world.moved[-5] = -1005
    async with connect() as far:
        await far.send(-5, "found you")
        moved = Refusal(400, "Bad Request: group chat was upgraded to a supergroup chat", migrate_to_chat_id=-1005)
        for refusal in (moved, bad("can't parse entities: something new")):
            api.faults.append(Fault("sendMessage", refusal))
        await far.send(-5, "and ", Part("here", Style.CODE))

    assert api.world.texts(-1005) == ["found you", "and here"]


async def test_replies_are_sent_before_and_after_messages_are_taken_in(api, connect, ann):
    async with connect() as far:
        pass
    await far.send(42, "good bye")

    assert api.world.texts(42) == ["good bye"]
    assert not far.adapter.connected


async def test_a_reply_to_what_is_gone_arrives_all_the_same(api, connect, ann):
    group = api.world.group(-100)
    async with connect() as far:
        api.world.say(ann, "/status", chat=group)
        (inbound,) = await far.heard()
        api.fail("sendMessage", 400, "Bad Request: message to be replied not found")
        await far.send(-100, "all is well", reply_to=inbound.event_id)

    (given,) = api.called("sendMessage")
    assert (given["text"], "reply_parameters" in given) == ("all is well", False)
