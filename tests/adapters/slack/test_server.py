"""The Slack of these tests refuses what Slack refuses; otherwise nothing here would prove anything."""

import pytest
from aiohttp import ClientSession, WSServerHandshakeError

from tests.adapters.slack.limits import Refusal, check_message
from tests.adapters.slack.server import BOT_TOKEN


def section(*elements: dict) -> list[dict]:
    return [{"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [*elements]}]}]


def button(**other: object) -> dict:
    return {"type": "button", "text": {"type": "plain_text", "text": "Run"}, "action_id": "t1", "value": "t1", **other}


WORD = {"type": "text", "text": "word"}
ACTIONS = {"type": "actions", "elements": [button()]}


@pytest.mark.parametrize(
    ("text", "blocks", "update"),
    [
        ("", section(WORD), False),
        ("x" * 40_001, None, False),
        ("x" * 4_000, None, True),
        ("<b>", None, False),
        ("a & b", None, False),
        ("x", [], False),
        ("x", section(WORD) * 51, False),
        ("x", section({"type": "text", "text": ""}), False),
        ("x", section({"type": "text", "text": "x" * 3_001}), False),
        ("x", section({"type": "text", "text": "x" * 2_900}) * 5, False),
        ("x", section({"type": "text", "text": "漢" * 1_400}), True),
        ("x", section({**WORD, "style": {"huge": True}}), False),
        ("x", section({**WORD, "colour": "red"}), False),
        ("x", [{"type": "rich_text", "elements": []}], False),
        ("x", [{"type": "carousel"}], False),
        ("x", [{"type": "actions", "elements": [button(action_id=f"{number}") for number in range(26)]}], False),
        ("x", [ACTIONS, ACTIONS], False),
        ("x", [{"type": "actions", "elements": [button(text={"type": "plain_text", "text": "x" * 76})]}], False),
        ("x", [{"type": "actions", "elements": [button(action_id="x" * 256)]}], False),
        ("x", [{"type": "actions", "elements": [button(confirm={"title": WORD})]}], False),
    ],
)
def test_a_message_beyond_the_limits_is_refused(text, blocks, update):
    with pytest.raises((Refusal, KeyError)):
        check_message(text, blocks, update=update)


def test_a_message_within_the_limits_is_taken():
    check_message("a &lt;b&gt; &amp;amp;", [*section(WORD, {**WORD, "style": {"code": True}}), ACTIONS], update=True)


@pytest.mark.parametrize(
    ("method", "token", "given", "error"),
    [
        ("auth.test", "xoxb-wrong", {}, "invalid_auth"),
        ("apps.connections.open", BOT_TOKEN, {}, "invalid_auth"),
        ("no.such", BOT_TOKEN, {}, "unknown_method"),
        ("chat.postMessage", BOT_TOKEN, {"channel": "C0GEN", "text": "x", "shout": True}, "invalid_arguments"),
        ("chat.postMessage", BOT_TOKEN, {"channel": "C0NONE", "text": "x"}, "channel_not_found"),
        ("chat.postMessage", BOT_TOKEN, {"channel": "C0OUT", "text": "x"}, "not_in_channel"),
        ("chat.postMessage", BOT_TOKEN, {"channel": "C0GEN", "text": "x", "thread_ts": "9.9"}, "invalid_thread_ts"),
        ("chat.postEphemeral", BOT_TOKEN, {"channel": "C0GEN", "text": "x", "user": "U9"}, "user_not_in_channel"),
        ("chat.delete", BOT_TOKEN, {"channel": "C0GEN", "ts": "9.9"}, "message_not_found"),
        (
            "views.publish",
            BOT_TOKEN,
            {"user_id": "U0ANN", "view": {"type": "modal", "blocks": []}},
            "invalid_arguments",
        ),
    ],
)
async def test_a_wrong_call_is_refused(slack, method, token, given, error):
    slack.world.channel("C0GEN", "U0ANN")
    slack.world.channel("C0OUT", "U0ANN", bot=False)
    headers = {"Authorization": f"Bearer {token}"}
    async with ClientSession(headers=headers) as session, session.post(f"{slack.api_base}/{method}", json=given) as got:
        assert (await got.json())["error"] == error


async def test_a_connection_needs_a_ticket_that_is_used_once(slack):
    ticket = slack.answers.answer("apps.connections.open", {})["url"]
    async with ClientSession() as session:
        async with session.ws_connect(ticket) as socket:
            assert (await socket.receive_json())["type"] == "hello"
        with pytest.raises(WSServerHandshakeError):
            await session.ws_connect(ticket)
