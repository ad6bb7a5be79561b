"""What a start does before anything is received: what a dead process was in the middle of is brought to its end, once.

1. Interrupted restores are finished, files first, then the conversation. 2. Interrupted turns are stored as such. 3.
Open messages and replies are taken over. Each chat is told in the same transaction as the change it is told of.
"""

from collections.abc import Collection

from gateway.commands.settling import OpenWorkspace, Settled, settle_restores
from gateway.offload import Offload
from gateway.state.memory import Memory
from gateway.state.takeover import TakenOver


async def recover(
    memory: Memory, engine: Offload, open_workspace: OpenWorkspace, adapters: Collection[str]
) -> TakenOver:
    """Settle what dead processes left, and own their open messages and replies of ``adapters``.

    To be called before the hub and the delivery run. What is taken over they find by themselves.
    """
    for settled in await settle_restores(memory, engine, open_workspace):
        await tell(memory, settled)
    return await memory.takeover.run(adapters)


async def tell(memory: Memory, settled: Settled) -> None:
    """Store what a chat is told of a restore that was interrupted."""
    event_id = None if settled.inbox_id is None else await memory.inbox.event_of(settled.inbox_id)
    message = settled.reply.to(settled.place, event_id)
    if settled.inbox_id is None or settled.goes_on:
        await memory.outbox.put(message)
    else:
        await memory.inbox.done(settled.inbox_id, (message,))
