"""A number means what the list showed."""

from gateway.state.memory import Memory
from tests.gateway.state.kit import HERE, THERE


async def test_the_list_last_shown_is_kept_per_chat(memory: Memory):
    assert await memory.shown.find(HERE) is None
    await memory.shown.remember(HERE, root="/w/\udcff", ids=["a" * 40, "b" * 40])
    await memory.shown.remember(THERE, root="/w", ids=[])

    await memory.shown.remember(HERE, root="/w/\udcff", ids=["c" * 40])

    here, there = await memory.shown.find(HERE), await memory.shown.find(THERE)
    assert here is not None
    assert there is not None
    assert (here.root, here.ids, there.ids) == ("/w/\udcff", ("c" * 40,), ())
