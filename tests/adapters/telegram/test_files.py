"""Files that people send: fetched when they are wanted, and one message where they were sent together."""

import pytest

from adapters.contract import Inbound, Reception, SendFailed
from tests.adapters.telegram.bot_api import BotApi


@pytest.fixture
def ann(api: BotApi):
    return api.world.person(42, "Ann")


@pytest.fixture
def ben(api: BotApi):
    return api.world.person(43, "Ben")


async def test_files_are_offered_and_fetched_only_when_they_are_wanted(api, connect, ann):
    sizes = [
        {**api.world.keep(b"small"), "width": 90, "height": 90},
        {**api.world.keep(b"the large one"), "width": 800, "height": 600},
    ]
    async with connect() as far:
        api.world.send_file(ann, "my_file_[1].py", b"print()\n", "look at this")
        photo = api.world.say(ann, photo=sizes)
        await far.heard(2)
        before = api.called("getFile")
        offered = [file for inbound in far.received for file in inbound.offered]
        contents = [await file.fetch() for file in offered]

    assert before == []
    assert [inbound.text for inbound in far.received] == ["look at this", ""]
    assert [(file.name, file.size_bytes) for file in offered] == [
        ("my_file_[1].py", 8),
        (f"photo-{photo['message_id']}.jpg", 13),
    ]
    assert contents == [b"print()\n", b"the large one"]


async def test_the_files_of_an_album_are_one_message_that_is_confirmed_as_one(api, connect, ann, ben, impatient):
    group = api.world.group(-100)
    tried = []

    async def full_at_first(inbound: Inbound) -> Reception:
        tried.append(inbound.text)
        if tried in (["one"], ["one", "one", "compare these"]):
            raise OSError("disk full")
        return Reception()

    async with connect() as far:
        far.answer = full_at_first
        api.world.say(ann, "one", chat=group)
        for number in range(2):
            name = f"{number}.txt"
            words = "" if number else "compare these @TakebackBot"
            api.world.send_file(ann, name, name.encode(), words, chat=group, media_group_id="77")
            api.world.send_file(ben, name, b"", "", chat=group, media_group_id="88")
        polls = len(api.called("getUpdates"))
        await api.until(lambda: len(api.called("getUpdates")) > polls)
        # What is late by a question still belongs to it.
        api.world.send_file(ann, "2.txt", b"2.txt", chat=group, media_group_id="77")
        api.world.say(ann, "after it", chat=group)
        await far.heard(4)
        await api.until(lambda: not api.world.updates)
        album, other = (next(one for one in far.received if one.user == user and one.offered) for user in ("42", "43"))
        contents = [await file.fetch() for file in album.offered]

    assert tried == ["one", "one", "compare these", "compare these", "", "after it"]
    assert [file.name for file in album.offered] == ["0.txt", "1.txt", "2.txt"]
    assert contents == [b"0.txt", b"1.txt", b"2.txt"]
    assert (album.addressed, other.addressed, len(other.offered)) == (True, False, 2)


async def test_an_edited_caption_of_an_album_is_an_edit_like_any_other(api, connect, ann):
    async with connect() as far:
        first = api.world.send_file(ann, "a.txt", b"a", "look", media_group_id="77")
        api.world.send_file(ann, "b.txt", b"b", media_group_id="77")
        await far.heard()
        api.world.edit(first, "look again")
        await far.heard(2)

    assert [(len(inbound.offered), inbound.edited) for inbound in far.received] == [(2, False), (1, True)]


async def test_a_file_that_cannot_be_fetched_says_why_without_the_token(api, connect, ann):
    async with connect() as far:
        api.world.send_file(ann, "large.bin", b"")
        api.world.files["file1"] = b"x" * (20 * 1024 * 1024 + 1)
        api.world.send_file(ann, "lost.bin", b"lost")
        await far.heard(2)
        api.fail("download", times=2)  # the client tries a cut connection once more by itself
        failures = []
        for inbound in far.received:
            with pytest.raises(SendFailed) as caught:
                await inbound.offered[0].fetch()
            failures.append(caught.value)

    assert [failure.retry_after_s for failure in failures] == [None, 5.0]
    assert failures[0].reason == "Bad Request: file is too big"
    assert failures[1].reason.startswith("lost.bin was lost on its way")
