"""The menu and the bot's word about itself, as people see them."""

from adapters.contract import MenuEntry

MENU = (
    MenuEntry("rollback", "list the checkpoints, or restore one"),
    MenuEntry("pair", "admit somebody", admin_only=True),
    MenuEntry("Not-A-Name", "left out"),
)


async def test_everybody_and_administrators_get_their_menus(api, connect):
    api.world.private(api.world.person(7, "Ada"))

    async with connect(menu=MENU, admins=(7, 8)):
        await api.until(lambda: api.world.description)

    names = {scope: [command["command"] for command in commands] for scope, commands in api.world.commands.items()}
    assert names == {"all_private_chats": ["rollback"], "all_group_chats": ["rollback"], "chat 7": ["rollback", "pair"]}
    assert api.refused("setMyCommands") == ["Bad Request: chat not found"]


async def test_a_description_is_set_once_and_one_of_its_owners_is_kept(api, connect):
    async with connect():
        await api.until(lambda: api.called("setMyShortDescription"))
    api.world.description = "my own words"
    async with connect():
        await api.until(lambda: len(api.called("getMyDescription")) == 2)

    assert len(api.called("setMyDescription")) == 1
    assert api.world.description == "my own words"


async def test_a_menu_is_set_when_telegram_takes_it(api, connect):
    api.fail("setMyCommands", 429, "Too Many Requests: retry after 1", retry_after=1)
    async with connect(menu=MENU):
        await api.until(lambda: api.called("setMyShortDescription"))

    assert {*api.world.commands} == {"all_private_chats", "all_group_chats"}
    assert api.world.description


async def test_a_menu_that_is_refused_keeps_nobody_from_talking(api, connect):
    api.fail("setMyCommands", 400, "Bad Request: BOT_COMMAND_INVALID", times=2)
    api.fail("getMyDescription", 500, "Internal Server Error")
    async with connect(menu=MENU) as far:
        api.world.say(api.world.person(42, "Ann"), "hello")
        await far.heard()

    assert [inbound.text for inbound in far.received] == ["hello"]
