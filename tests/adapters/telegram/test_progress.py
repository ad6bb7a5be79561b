"""What goes on is shown at Telegram's pace, and nothing of it stays."""

import pytest

from adapters.contract import Place, SendFailed

GROUP = Place("telegram", "-100")
PRIVATE = Place("telegram", "42")


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    from adapters.telegram import progress

    monkeypatch.setattr(progress, "EVERY_S", 0.1)
    monkeypatch.setattr(progress, "EVERY_IN_GROUP_S", 0.1)
    monkeypatch.setattr(progress, "AGAIN_S", 0.3)


@pytest.fixture(autouse=True)
def _chats(api):
    api.world.private(api.world.person(42, "Ann"))
    api.world.group(-100)


async def test_in_a_group_one_message_is_edited_and_deleted_in_the_end(api, connect):
    async with connect() as far:
        await far.adapter.progress(GROUP, "running: make")
        await api.until(lambda: api.world.texts(-100) == ["running: make\n…"])
        for number in range(50):
            await far.adapter.progress(GROUP, f"running: make\nline {number}")
        await api.until(lambda: api.world.texts(-100) == ["running: make\nline 49\n…"])
        await far.adapter.progress(GROUP, "")
        await api.until(lambda: api.world.texts(-100) == [])

    assert len(api.called("sendMessage")) == 1
    assert len(api.called("editMessageText")) <= 2
    assert api.called("sendMessage")[0]["disable_notification"] is True
    assert {call["action"] for call in api.called("sendChatAction")} == {"typing"}


async def test_in_a_private_chat_it_is_a_draft_that_the_reply_replaces(api, connect):
    async with connect() as far:
        await far.adapter.progress(PRIVATE, "running: make\nline 1")
        await api.until(lambda: 42 in api.world.drafts)
        draft = api.world.drafts[42]
        await far.adapter.progress(PRIVATE, "")
        await far.send(42, "done")

    assert draft["text"] == "running: make\nline 1"
    assert api.world.texts(42) == ["done"]
    assert len({call["draft_id"] for call in api.called("sendMessageDraft")}) == 1


async def test_what_a_killed_process_would_leave_in_a_group_is_short_and_has_no_end(api, connect):
    async with connect() as far:
        await far.adapter.progress(GROUP, "running: make\n" + "".join(f"line {number}\n" for number in range(500)))
        await api.until(lambda: api.world.shown(-100))
        (left,) = api.world.texts(-100)

    assert left.startswith("running: make\n")
    assert left.endswith("\nline 499\n…")
    assert len(left) < 350


async def test_what_is_shown_in_a_group_goes_when_the_adapter_stops(api, connect):
    async with connect() as far:
        await far.adapter.progress(GROUP, "running: make")
        await api.until(lambda: api.world.shown(-100))

    assert api.world.texts(-100) == []


async def test_a_server_without_drafts_gets_a_message(api, connect):
    api.answers.has_drafts = False
    async with connect() as far:
        await far.adapter.progress(PRIVATE, "one")
        await api.until(lambda: api.world.texts(42) == ["one\n…"])
        await far.adapter.progress(PRIVATE, "two")
        await api.until(lambda: api.world.texts(42) == ["two\n…"])
        await far.adapter.progress(PRIVATE, "")
        await api.until(lambda: api.world.texts(42) == [])

    assert len(api.refused("sendMessageDraft")) == 1


async def test_one_chats_refused_draft_costs_no_other_chat_its_drafts(api, connect):
    ben = Place("telegram", "43")
    api.world.private(api.world.person(43, "Ben"))
    async with connect() as far:
        api.fail("sendMessageDraft", 400, "Bad Request: can't parse entities: something new")
        await far.adapter.progress(PRIVATE, "one")
        await api.until(lambda: api.world.texts(42) == ["one\n…"])
        await far.adapter.progress(ben, "two")
        await api.until(lambda: 43 in api.world.drafts)
        await far.adapter.progress(PRIVATE, "")
        await far.adapter.progress(PRIVATE, "three")
        await api.until(lambda: api.world.drafts.get(42, {}).get("text") == "three")

    assert len(api.refused("sendMessageDraft")) == 1


async def test_progress_whose_message_telegram_tells_of_in_new_words_is_still_one_message(api, connect):
    async with connect() as far:
        api.world.chats[-100]["type"] = {"of": "a later version"}
        await far.adapter.progress(GROUP, "one")
        await api.until(lambda: api.world.texts(-100) == ["one\n…"])
        await far.adapter.progress(GROUP, "two")
        await api.until(lambda: api.world.texts(-100) == ["two\n…"])
        await far.adapter.progress(GROUP, "")
        await api.until(lambda: api.world.texts(-100) == [])

    assert len(api.called("sendMessage")) == 1


async def test_what_ends_within_a_moment_shows_no_message(api, connect):
    async with connect() as far:
        await far.adapter.progress(GROUP, "quick")
        await far.adapter.progress(GROUP, "")
        await far.send(-100, "done")

    assert api.world.texts(-100) == ["done"]


async def test_that_nothing_changed_is_no_failure_and_a_deleted_message_is_not_sent_again(api, connect):
    async with connect() as far:
        await far.adapter.progress(GROUP, "same")
        await api.until(lambda: api.world.shown(-100))
        api.fail("editMessageText", 400, "Bad Request: message is not modified: it is exactly the same")
        await far.adapter.progress(GROUP, "nearly the same")
        await api.until(lambda: api.refused("editMessageText"))
        api.world.messages.clear()
        await far.adapter.progress(GROUP, "another")
        await api.until(lambda: len(api.refused("editMessageText")) == 2)
        await far.adapter.progress(GROUP, "")
        await far.send(-100, "done")

    assert api.world.texts(-100) == ["done"]
    assert api.refused("editMessageText")[1] == "Bad Request: message to edit not found"


async def test_a_flooded_chat_is_left_alone_and_its_reply_still_arrives(api, connect):
    async with connect() as far:
        api.fail("sendChatAction", 429, "Too Many Requests: retry after 33", retry_after=33)
        await far.adapter.progress(GROUP, "one")
        await api.until(lambda: api.refused("sendChatAction"))
        for number in range(20):
            await far.adapter.progress(GROUP, f"number {number}")
        await far.adapter.progress(PRIVATE, "meanwhile")
        await api.until(lambda: 42 in api.world.drafts)
        api.fail("sendMessage", 429, "Too Many Requests: retry after 33", retry_after=33)
        with pytest.raises(SendFailed) as caught:
            await far.send(-100, "done")
        await far.adapter.progress(GROUP, "")
        await far.send(-100, "done")

    assert caught.value.retry_after_s == 33.0
    assert api.world.texts(-100) == ["done"]
    assert len(api.refused("sendChatAction")) == 1
    assert {call["chat_id"] for call in api.called("sendChatAction")} == {42}


async def test_progress_after_the_end_is_dropped(api, connect):
    async with connect() as far:
        pass
    await far.adapter.progress(GROUP, "too late")

    assert api.called("sendChatAction") == []
