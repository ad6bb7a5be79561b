"""Codes and the people they admit."""

from datetime import timedelta

import pytest

from adapters.contract import Place
from gateway.state.access import (
    CODE_ALPHABET,
    CODE_CHARACTERS,
    CODE_LIFETIME,
    CODES_OF_ALL,
    CODES_OF_ONE,
    Role,
)
from gateway.state.memory import Memory
from tests.gateway.state.kit import MovedClock

ASKED = Place("telegram", "7")


async def issue(memory: Memory, user: str = "7", place: Place = ASKED) -> str:
    code = await memory.admissions.issue(place, user)
    assert code is not None
    return code


async def test_a_code_admits_whom_it_was_given_to_in_the_role_that_is_said_once(memory: Memory):
    code = await issue(memory)
    assert (len(code), set(code) - set(CODE_ALPHABET)) == (CODE_CHARACTERS, set())
    assert not set("01IO") & set(CODE_ALPHABET)

    admission = await memory.admissions.redeem(code, Role.ADMIN, by="telegram:1")

    assert admission is not None
    assert (admission.user, admission.role, admission.chat, admission.admitted_by) == ("7", "admin", "7", "telegram:1")
    assert await memory.admissions.role("telegram", "7") is Role.ADMIN
    assert await memory.admissions.redeem(code, Role.USER, by="telegram:1") is None
    assert await memory.admissions.all() == [admission]


@pytest.mark.parametrize("spell", [str.lower, lambda code: f" {code[:4]}-{code[4:]}\n", " ".join])
async def test_a_code_may_be_typed_in_any_spelling(memory: Memory, spell):
    code = await issue(memory)

    assert await memory.admissions.redeem(spell(code), Role.USER, by="x") is not None


@pytest.mark.parametrize(
    "spoil", [lambda code: code[:-1], lambda code: code + "A", lambda _: "", lambda _: "\udcff" * 8]
)
async def test_a_wrong_code_admits_nobody(memory: Memory, spoil):
    code = await issue(memory)

    assert await memory.admissions.redeem(spoil(code), Role.USER, by="x") is None
    assert await memory.admissions.all() == []


async def test_a_code_is_good_for_its_time_only(memory: Memory, clock: MovedClock):
    early, late = await issue(memory, "early"), await issue(memory, "late")
    clock.advance(CODE_LIFETIME - timedelta(seconds=1))
    assert await memory.admissions.redeem(early, Role.USER, by="x") is not None

    clock.advance(timedelta(seconds=1))

    assert await memory.admissions.redeem(late, Role.USER, by="x") is None
    clock.advance(CODE_LIFETIME)
    assert await memory.admissions.redeem(late, Role.USER, by="x") is None


async def test_the_database_holds_no_code(memory: Memory):
    codes = [await issue(memory, str(user)) for user in range(3)]

    rows = await memory.database.fetch_all("SELECT * FROM pairing_codes")
    stored = "".join(str(value) for row in rows for value in tuple(row))

    assert not any(code in stored for code in codes)
    assert len({row["salt"] for row in rows}) == len({row["digest"] for row in rows}) == 3


async def test_one_person_has_few_codes_and_the_newest_of_them(memory: Memory):
    codes = [await issue(memory) for _ in range(CODES_OF_ONE + 1)]

    assert await memory.admissions.redeem(codes[0], Role.USER, by="x") is None
    assert await memory.admissions.redeem(codes[1], Role.USER, by="x") is not None
    assert await memory.database.fetch_all("SELECT 1 FROM pairing_codes") == [], "one that is used ends them all"


async def test_strangers_get_no_more_codes_than_there_is_room_for_until_some_are_too_old(
    memory: Memory, clock: MovedClock
):
    for user in range(CODES_OF_ALL):
        await issue(memory, str(user))

    assert await memory.admissions.issue(ASKED, "one more") is None
    assert await memory.admissions.issue(Place("slack", "D1"), "elsewhere") is not None
    clock.advance(CODE_LIFETIME)
    assert await memory.admissions.issue(ASKED, "one more") is not None


async def test_who_is_removed_is_admitted_no_longer(memory: Memory):
    await memory.admissions.redeem(await issue(memory), Role.USER, by="x")

    assert await memory.admissions.remove("telegram", "7")

    assert await memory.admissions.role("telegram", "7") is None
    assert not await memory.admissions.remove("telegram", "7")


async def test_an_admitted_person_is_told_once_where_they_asked_by_whoever_serves_their_platform(memory: Memory):
    await memory.admissions.redeem(await issue(memory), Role.ADMIN, by="x")
    owner = memory.instance.id

    elsewhere = await memory.admissions.tell(["slack"], lambda role: f"you are {role}", owner=owner)
    told = await memory.admissions.tell(["telegram"], lambda role: f"you are {role}", owner=owner)
    again = await memory.admissions.tell(["telegram"], lambda role: f"you are {role}", owner=owner)

    assert (elsewhere, told, again) == ([], [ASKED], [])
    reply = await memory.outbox.next(ASKED)
    assert reply is not None
    assert reply.message.plain_text == "you are admin"


async def test_who_is_admitted_again_has_the_new_role_and_is_told_again(memory: Memory):
    for role in (Role.USER, Role.ADMIN):
        await memory.admissions.redeem(await issue(memory), role, by="x")
        assert await memory.admissions.tell(["telegram"], str, owner=memory.instance.id) == [ASKED]

    assert await memory.admissions.role("telegram", "7") is Role.ADMIN
    assert len(await memory.admissions.all()) == 1
