"""The tests' own Bot API is Telegram's: a client that none of us wrote gets along with it, and mistakes are refused."""

import json

import anyio
import pytest
from aiohttp import ClientSession

from tests.adapters.telegram.bot_api import TOKEN

CHAT = {"chat_id": "42", "text": "😀 one"}


@pytest.fixture
def ann(api):
    person = api.world.person(42, "Ann")
    api.world.private(person)
    return person


async def test_another_client_holds_a_whole_conversation(api, ann):
    from telegram import InlineKeyboardButton, InlineKeyboardMarkup, LinkPreviewOptions, MessageEntity, ReplyParameters
    from telegram.ext import Application, CallbackQueryHandler, CommandHandler, MessageHandler, filters

    async def start(update, context) -> None:
        keys = InlineKeyboardMarkup([[InlineKeyboardButton("Go", callback_data="go")]])
        sent = await update.message.reply_text(
            "hello code",
            entities=[MessageEntity("code", 6, 4)],
            reply_markup=keys,
            reply_parameters=ReplyParameters(update.message.message_id),
            link_preview_options=LinkPreviewOptions(is_disabled=True),
        )
        assert sent.entities[0].type == "code"
        assert sent.reply_markup.inline_keyboard[0][0].callback_data == "go"

    async def pressed(update, context) -> None:
        await update.callback_query.answer("going", show_alert=True)
        await update.callback_query.edit_message_text("gone")
        await context.bot.send_chat_action(42, "typing")
        await context.bot.send_document(42, b"+x\n", filename="all.diff", caption="whole")

    async def filed(update, context) -> None:
        file = await update.message.document.get_file()
        content = bytes(await file.download_as_bytearray())
        await update.message.reply_text(f"{update.message.caption}: {content.decode()}")

    async def edited(update, context) -> None:
        note = await context.bot.send_message(42, f"edited to {update.edited_message.text}")
        await note.delete()

    application = Application.builder().token(TOKEN).base_url(f"{api.base}/bot").base_file_url(f"{api.base}/file/bot")
    program = application.build()
    program.add_handler(CommandHandler("start", start, filters=filters.UpdateType.MESSAGE))
    program.add_handler(CallbackQueryHandler(pressed))
    program.add_handler(MessageHandler(filters.Document.ALL, filed))
    program.add_handler(MessageHandler(filters.UpdateType.EDITED_MESSAGE, edited))
    async with program:
        await program.bot.set_my_commands([("start", "begin")])
        await program.start()
        await program.updater.start_polling(timeout=5)
        asked = api.world.say(ann, "/start")
        await api.until(lambda: api.world.texts(42) == ["hello code"])
        query = api.world.press(ann, "Go")
        await api.until(lambda: api.world.texts(42) == ["gone", "whole"])
        api.world.send_file(ann, "notes.txt", b"content", "caption")
        await api.until(lambda: api.world.texts(42)[-1] == "caption: content")
        api.world.edit(asked, "/start again")
        await api.until(lambda: api.called("deleteMessage"))
        await program.updater.stop()
        await program.stop()

    assert api.world.answers[query] == {"text": "going", "show_alert": True}
    assert api.world.texts(42) == ["gone", "whole", "caption: content"]
    assert api.world.updates == []
    assert [call.outcome.description for call in api.calls if hasattr(call.outcome, "description")] == []


async def test_of_two_who_poll_the_earlier_is_sent_away(api, ann):
    async with ClientSession(api.base) as session, anyio.create_task_group() as tasks:
        answers = []

        async def poll(name: str) -> None:
            async with session.post(f"/bot{TOKEN}/getUpdates", data={"timeout": "20"}) as answer:
                answers.append((name, answer.status))

        tasks.start_soon(poll, "first")
        await api.until(lambda: api._poller)
        tasks.start_soon(poll, "second")
        await api.until(lambda: answers)
        api.world.say(ann, "hello")

    assert answers == [("first", 409), ("second", 200)]


def entities(*marks: tuple[str, int, int]) -> str:
    return json.dumps([{"type": kind, "offset": start, "length": length} for kind, start, length in marks])


def keyboard(**button: str) -> str:
    return json.dumps({"inline_keyboard": [[{"text": "key", **button}]]})


@pytest.mark.parametrize(
    ("method", "given", "status", "description"),
    [
        ("sendMessage", {**CHAT, "colour": "red"}, 400, "sendMessage has no parameter colour"),
        ("sendMessage", {**CHAT, "message_thread_id": "x"}, 400, "parameter message_thread_id has a wrong value"),
        ("sendMessage", {**CHAT, "message_thread_id": "1"}, 400, "message thread not found"),
        ("sendMessage", {"chat_id": "42"}, 400, "message text is empty"),
        ("sendMessage", {"chat_id": "42", "text": " \n"}, 400, "message text is empty"),
        ("sendMessage", {"chat_id": "43", "text": "one"}, 400, "chat not found"),
        ("sendMessage", {"chat_id": "42", "text": "x" * 4097}, 400, "message is too long"),
        ("sendMessage", {"chat_id": "42", "text": "😀" * 2049}, 400, "message is too long"),
        ("sendMessage", {**CHAT, "entities": entities(("bold", 4, 3))}, 400, "bold at 4+3 lies outside of the text"),
        ("sendMessage", {**CHAT, "entities": entities(("bold", 1, 2))}, 400, "bold at 1+2 cuts a character"),
        ("sendMessage", {**CHAT, "entities": entities(("loud", 0, 2))}, 400, "unsupported entity"),
        (
            *("sendMessage", {**CHAT, "entities": entities(("bold", 0, 4), ("italic", 3, 3))}, 400),
            "bold and italic can't be nested",
        ),
        (
            *("sendMessage", {**CHAT, "entities": entities(("pre", 0, 6), ("bold", 3, 3))}, 400),
            "pre and bold can't be nested",
        ),
        ("sendMessage", {**CHAT, "reply_markup": keyboard(callback_data="x" * 65)}, 400, "BUTTON_DATA_INVALID"),
        ("sendMessage", {**CHAT, "reply_markup": keyboard()}, 400, "BUTTON_DATA_INVALID"),
        ("sendMessage", {**CHAT, "reply_parameters": '{"message_id": 9}'}, 400, "message to be replied not found"),
        ("editMessageText", {**CHAT, "message_id": "1"}, 400, "message is not modified"),
        ("editMessageText", {**CHAT, "message_id": "9"}, 400, "message to edit not found"),
        ("deleteMessage", {"chat_id": "42", "message_id": "9"}, 400, "message to delete not found"),
        ("answerCallbackQuery", {"callback_query_id": "old"}, 400, "query is too old"),
        ("getFile", {"file_id": "none"}, 400, "wrong file_id"),
        ("sendDocument", {"chat_id": "42", "document": "attach://none"}, 400, "parameter document has a wrong value"),
        ("setMyCommands", {"commands": '[{"command": "A-b", "description": "x"}]'}, 400, "BOT_COMMAND_INVALID"),
        ("setWebhook", {"url": "http://plain.example"}, 400, "An HTTPS URL must be provided"),
        ("sendMessageDraft", {"chat_id": "42", "draft_id": "0", "text": "x"}, 400, "needs a private chat and a number"),
        ("flyToTheMoon", {}, 404, "method not found"),
    ],
)
async def test_what_telegram_refuses_is_refused(api, ann, method, given, status, description):
    async with ClientSession(api.base) as session:
        await session.post(f"/bot{TOKEN}/sendMessage", data=CHAT)
        async with session.post(f"/bot{TOKEN}/{method}", data=given) as answer:
            body = await answer.json()

    assert (answer.status, body["ok"], body["error_code"]) == (status, False, status)
    assert description in body["description"]
