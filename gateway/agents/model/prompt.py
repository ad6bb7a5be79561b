"""What a model is told before anything else: how it works here, and what the workspace says of itself."""

from functools import cache
from importlib.resources import files

from engine.errors import EngineError
from gateway.agents.base import Tools

WORKSPACE_FILE = "AGENTS.md"
"""Where a workspace says what agents should know of it."""

WORKSPACE_CHARACTERS = 16_000
"""How much of that file is taken."""


@cache
def own_prompt() -> str:
    """The prompt that comes with this program. Blocking the first time."""
    return (files(__package__) / "prompt.md").read_text(encoding="utf-8").strip()


async def system_prompt(own: str, tools: Tools) -> str:
    """The whole prompt: this program's, then the workspace's file, as far as there is one."""
    said = await _workspace_words(tools)
    if not said:
        return own
    return f"{own}\n\nThe workspace says in its {WORKSPACE_FILE}:\n\n{said}"


async def _workspace_words(tools: Tools) -> str:
    try:
        result = await tools.look(WORKSPACE_FILE)
    except EngineError:
        return ""
    if not result.ok:
        return ""
    text = result.text.strip()
    left = len(text) - WORKSPACE_CHARACTERS
    return text if left <= 0 else f"{text[:WORKSPACE_CHARACTERS]}\n({left} characters more: read_file shows them)"
