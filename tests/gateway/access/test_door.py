"""What is let in, what is refused, and what of it leaves a trace."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

import anyio
import pytest

from adapters.contract import Attachment, Button, Inbound, Offered, Place, Reception
from gateway.access import refusals
from gateway.access.admission import OWNED, Access, Rules, rules_of
from gateway.access.door import IDS_EVERY_S, REFUSED_EVERY_S, Door, Entry
from gateway.config.settings import MIB, Settings
from gateway.state.access import CODES_OF_ALL, Role
from gateway.state.memory import Memory, open_memory

PRIVATE, GROUP = Place("telegram", "7"), Place("telegram", "-100/4")
ADMITTED = Rules(people=frozenset({"7"}), admins=frozenset({"1"}), circles=frozenset({"-100"}), largest_file_bytes=MIB)


@pytest.fixture
async def memory(tmp_path):
    async with open_memory(str(tmp_path / "home")) as memory:
        yield memory


@dataclass
class Time:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


def door(memory: Memory, rules: Rules, time: Time | None = None) -> Door:
    access = Access(memory.admissions, {"telegram": rules})
    return Door(access, memory.admissions, memory.buttons, memory.moves, clock=time or Time())


def sent(text: str = "hello", user: str = "9", **more) -> Inbound:
    return Inbound(PRIVATE, user, "e1", text, **{"private": True, **more})


def in_group(text: str = "hello", user: str = "9", **more) -> Inbound:
    return Inbound(GROUP, user, "e1", text, **{"circles": ("-200",), **more})


def offered(fetched: list[str], name: str = "a.txt", content: bytes = b"abc", size: int | None = None) -> Offered:
    async def fetch() -> bytes:
        fetched.append(name)
        return content

    return Offered(name, size, fetch)


async def left(memory: Memory) -> int:
    """Rows that what was refused could have left."""
    tables = ("inbox", "inbox_files", "outbox", "chats", "sessions", "admissions")
    return sum([len(await memory.database.fetch_all(f"SELECT 1 FROM {table}")) for table in tables])


ENTRIES = {
    "text": sent(),
    "slash command": sent("/status"),
    "button": sent("", pressed="0" * 32),
    "edited message": sent(edited=True),
    "file": sent("", files=(Attachment("a", b"b"),)),
    "in a group": in_group("/rollback 1"),
}


@pytest.mark.parametrize("inbound", ENTRIES.values(), ids=ENTRIES.keys())
@pytest.mark.parametrize("rules", [Rules(), ADMITTED], ids=["empty", "others"])
async def test_every_kind_of_entry_is_refused_with_how_to_be_admitted(memory: Memory, inbound: Inbound, rules: Rules):
    fetched: list[str] = []

    reception = await door(memory, rules).enter(replace(inbound, offered=(offered(fetched),)))

    assert isinstance(reception, Reception)
    assert reception.notice is not None
    assert "telegram.allow" in reception.notice
    assert "User: 9\n" in reception.notice
    assert (await left(memory), fetched, reception.spent) == (0, [], False)


async def test_a_platform_without_rules_admits_nobody(memory: Memory):
    inbound = Inbound(Place("slack", "D1"), "U1", "e1", "hello", private=True)

    assert isinstance(await door(memory, OWNED).enter(inbound), Reception)


@pytest.mark.parametrize(
    ("inbound", "role"),
    [
        (sent(user="7"), Role.USER),
        (sent(user="1"), Role.ADMIN),
        (in_group(user="9", circles=("-100",)), Role.USER),
        (in_group(user="7"), Role.USER),
        (sent(user="9", circles=("-100",)), Role.USER),
        (sent(user="70"), None),
        (sent(user="-100"), None),
        (sent(user=""), None),
        (in_group(circles=("7",)), None),
    ],
)
async def test_people_and_groups_are_admitted_by_their_ids_alone(memory: Memory, inbound: Inbound, role: Role | None):
    entered = await door(memory, ADMITTED).enter(inbound)

    assert isinstance(entered, Entry) == (role is not None)
    assert await door(memory, ADMITTED).role(inbound) is role


async def test_a_code_that_is_redeemed_admits_also_somebody_whom_a_group_admits_already(memory: Memory):
    reception = await door(memory, Rules()).enter(sent())
    assert isinstance(reception, Reception)
    assert reception.notice is not None
    code = reception.notice.split("gateway pair ")[1].split()[0]

    await memory.admissions.redeem(code, Role.ADMIN, by="operator")

    assert await door(memory, ADMITTED).role(in_group(circles=("-100",))) is Role.ADMIN
    await memory.admissions.remove("telegram", "9")
    assert await door(memory, ADMITTED).role(in_group(circles=("-100",))) is Role.USER
    assert await door(memory, ADMITTED).role(sent()) is None


async def test_where_others_read_along_there_is_no_code(memory: Memory):
    for inbound in (in_group(), replace(in_group(), circles=()), in_group(pressed="0" * 32)):
        reception = await door(memory, Rules()).enter(inbound)
        assert isinstance(reception, Reception)
        assert "Write to me in private" in (reception.notice or "")

    assert await memory.database.fetch_all("SELECT 1 FROM pairing_codes") == []


async def test_a_refusal_is_said_to_one_person_once_in_a_while_and_logged_by_ids_alone(
    memory: Memory, time: Time, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)
    entrance = door(memory, Rules(), time)

    said = [await entrance.enter(sent("secret words")) for _ in range(3)]
    other = await entrance.enter(sent(user="10"))
    time.now += REFUSED_EVERY_S
    later = await entrance.enter(sent("secret words"))

    assert [isinstance(one, Reception) and one.notice is not None for one in [*said, other, later]] == [
        *(True, False, False),
        *(True, True),
    ]
    assert [record.message for record in caplog.records] == ["refused"] * 3
    assert "secret" not in caplog.text
    assert (caplog.records[0].user, caplog.records[0].chat) == ("9", "7")  # type: ignore[attr-defined]


async def test_the_strangers_of_one_group_are_told_together(memory: Memory, time: Time):
    entrance = door(memory, Rules(), time)

    said = [await entrance.enter(in_group(user=str(user))) for user in range(20)]

    assert [isinstance(one, Reception) and one.notice is not None for one in said] == [True, *[False] * 19]


async def test_when_too_many_have_a_code_the_ids_are_said(memory: Memory):
    entrance = door(memory, Rules())
    for user in range(100, 100 + CODES_OF_ALL):
        await memory.admissions.issue(PRIVATE, str(user))

    reception = await entrance.enter(sent())

    assert isinstance(reception, Reception)
    assert "too many people have a code" in (reception.notice or "")
    assert "User: 9" in (reception.notice or "")


@pytest.mark.parametrize("text", ["/whoami", "!WhoAmI", " /whoami@MyBot "])
async def test_everybody_may_ask_for_their_ids(memory: Memory, time: Time, text: str):
    entrance = door(memory, Rules(), time)
    await entrance.enter(in_group())

    asked = [await entrance.enter(in_group(text)) for _ in range(2)]
    time.now += IDS_EVERY_S
    asked.append(await entrance.enter(in_group(text)))

    ids = "User: 9\nChat: -100/4\nGroup: -200\nPlatform: telegram"
    assert asked == [Reception(ids), Reception(None), Reception(ids)]
    assert await left(memory) == 0


@pytest.mark.parametrize("user", ["7", "9"])
async def test_what_is_not_addressed_in_a_group_is_dropped_before_anything(memory: Memory, user: str):
    fetched: list[str] = []

    entered = await door(memory, ADMITTED).enter(in_group(user=user, addressed=False, offered=(offered(fetched),)))

    assert (entered, fetched, await left(memory)) == (Reception(), [], 0)


async def test_where_everything_is_answered_strangers_who_speak_to_others_are_left_alone(memory: Memory):
    entrance = door(memory, replace(ADMITTED, answers_everything=True))

    assert isinstance(await entrance.enter(in_group(user="7", addressed=False)), Entry)
    assert await entrance.enter(in_group(user="9", addressed=False)) == Reception()
    assert await entrance.enter(in_group("/whoami", user="9", addressed=False)) == Reception()


async def test_files_are_fetched_and_what_is_not_taken_is_said_while_the_text_is_handled(memory: Memory):
    fetched: list[str] = []
    big, lie = offered(fetched, "big.zip", size=3 * MIB), offered(fetched, "lie", b"x" * 2 * MIB)
    files = (offered(fetched, "../../a\n.txt"), big, lie)

    entered = await door(memory, ADMITTED).enter(sent("look", user="7", offered=files))

    assert isinstance(entered, Entry)
    assert entered.inbound == sent("look", user="7", files=(Attachment("a_.txt", b"abc"),))
    (remark,) = entered.remarks
    assert remark.reply_to == "e1"
    assert remark.plain_text.splitlines() == [
        "⚠ big.zip was not taken: it has 3.0 MB, and the limit is 1 MB.",
        "⚠ lie was not taken: it has 2.0 MB, and the limit is 1 MB.",
    ]
    assert fetched == ["../../a\n.txt", "lie"]


async def test_nothing_is_fetched_for_an_edited_message(memory: Memory):
    fetched: list[str] = []

    entered = await door(memory, ADMITTED).enter(sent(user="7", edited=True, offered=(offered(fetched),)))

    assert entered == Entry(sent(user="7", edited=True))
    assert fetched == []


async def minted(memory: Memory, *, user: str | None = "7", once: bool = False, command: str = "/diff #1") -> str:
    """A button's token, made for the sender of a message or for everybody."""
    asked = None if user is None else await memory.inbox.accept(Inbound(PRIVATE, user, f"asked {user}", "work"))
    (button,) = await memory.buttons.mint(PRIVATE, [Button("B", command)], inbox_id=asked, once=once)
    return button.token


def press(token: str, user: str = "7", event_id: str = "press", place: Place = PRIVATE) -> Inbound:
    return Inbound(place, user, event_id, "", pressed=token)


async def test_a_press_becomes_the_command_it_stands_for(memory: Memory):
    token = await minted(memory)

    entered = await door(memory, ADMITTED).enter(press(token))

    assert entered == Entry(replace(press(token), text="/diff #1"))


@pytest.mark.parametrize(
    ("user", "place", "notice", "spent"),
    [
        ("1", PRIVATE, None, None),
        ("8", PRIVATE, refusals.ANOTHERS_BUTTON, False),
        ("7", GROUP, refusals.ELSEWHERES_BUTTON, False),
        ("1", GROUP, refusals.ELSEWHERES_BUTTON, False),
    ],
)
async def test_a_button_is_for_its_person_and_admins_in_its_chat(memory: Memory, user, place, notice, spent):
    token = await minted(memory)
    rules = replace(ADMITTED, people=frozenset({"7", "8"}))

    entered = await door(memory, rules).enter(press(token, user, place=place))

    if notice is None:
        assert isinstance(entered, Entry)
    else:
        assert entered == Reception(notice, spent=spent)


async def test_a_button_of_somebody_who_spoke_as_the_group_is_for_whoever_is_admitted_in_it(memory: Memory):
    token = await minted(memory, user="-100")
    here = replace(press(token, "8"), circles=("-100",))

    assert isinstance(await door(memory, ADMITTED).enter(here), Entry)
    entered = await door(memory, replace(ADMITTED, people=frozenset({"8"}))).enter(replace(here, circles=("-200",)))
    assert entered == Reception(refusals.ANOTHERS_BUTTON)


async def test_a_button_of_a_reply_to_nobody_is_for_everybody_admitted(memory: Memory):
    token = await minted(memory, user=None)
    rules = replace(ADMITTED, people=frozenset({"8"}))

    assert isinstance(await door(memory, rules).enter(press(token, "8")), Entry)
    assert isinstance(await door(memory, rules).enter(press(token, "9")), Reception)


@pytest.mark.parametrize("token", ["", "0" * 32, "x" * 64, "\udcff", "' OR 1"])
async def test_a_button_that_nobody_knows_says_what_to_type(memory: Memory, token: str):
    entered = await door(memory, ADMITTED).enter(press(token))

    assert entered == Reception(refusals.UNKNOWN_BUTTON, spent=True)


async def test_a_button_that_is_too_old_says_what_to_type(memory: Memory):
    token = await minted(memory)
    async with memory.database.transaction() as tx:
        await tx.execute("UPDATE buttons SET made_at = '2020-01-01T00:00:00.000000Z'")

    entered = await door(memory, ADMITTED).enter(press(token))

    assert entered == Reception("This button is too old to be pressed. Type instead: /diff #1", spent=True)


async def test_a_button_that_acts_once_is_known_to_have_acted_also_when_its_press_comes_again(memory: Memory):
    token = await minted(memory, once=True)
    entrance = door(memory, ADMITTED)
    entered = await entrance.enter(press(token))
    assert isinstance(entered, Entry)
    await memory.inbox.accept(entered.inbound, spends=entered.spends)

    assert await entrance.enter(press(token)) == Reception(spent=True)
    assert await entrance.enter(press(token, event_id="another")) == Reception(refusals.USED_BUTTON, spent=True)


async def test_the_configuration_says_whom_a_platform_admits_and_the_console_is_its_owners():
    settings = Settings.model_validate(
        {
            "telegram": {"token": "t", "allow": [7], "allow_groups": [-100], "admins": [1], "groups": "all"},
            "slack": {"bot_token": "b", "app_token": "a", "allow": ["U7"], "max_attachment_mb": 0.5},
        }
    )

    rules = rules_of(settings)

    assert rules["console"] == OWNED
    assert rules["telegram"] == replace(
        ADMITTED, answers_everything=True, largest_file_bytes=20 * 1024 * 1024, fetch_limit_s=10.0
    )
    assert rules["slack"] == Rules(people=frozenset({"U7"}), largest_file_bytes=512 * 1024, fetch_limit_s=2.0)
    assert set(rules_of(Settings())) == {"console"}


async def test_many_at_the_door_are_decided_about_beside_each_other(memory: Memory):
    """A file that does not come holds up nobody else."""
    never = anyio.Event()

    async def fetch() -> bytes:
        await never.wait()
        return b""

    entrance = door(memory, replace(ADMITTED, fetch_limit_s=0.05))
    entered: list[Entry | Reception] = []

    async def enter(inbound: Inbound) -> None:
        entered.append(await entrance.enter(inbound))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(enter, sent("slow", user="7", offered=(Offered("f", None, fetch),)))
        tasks.start_soon(enter, sent("quick", user="7"))

    assert texts(entered) == ["quick", "slow"]
    slow = entered[1]
    assert isinstance(slow, Entry)
    assert slow.remarks[0].plain_text == "⚠ f was not taken: it did not arrive within 0.05 s."


def texts(entered: Sequence[Entry | Reception]) -> list[str]:
    return [one.inbound.text for one in entered if isinstance(one, Entry)]
