"""What people are told who are not admitted, or whose button does nothing; never stored, for them alone."""

import re

from adapters.contract import Inbound
from gateway.render import name
from gateway.state.access import CODE_LIFETIME

REMOVED = "You are not admitted here any more, so this was not done. /whoami shows the ids to be admitted with."

UNKNOWN_BUTTON = (
    "This button is too old to be known. /rollback shows the checkpoints; /diff and /undo are for the last turn."
)
USED_BUTTON = "This has been answered already."
ANOTHERS_BUTTON = "This button is for the person who was answered with it, and for admins."
ELSEWHERES_BUTTON = "This button belongs to another chat, where it can be pressed."

_WHOAMI = re.compile(r"\s*[/!]whoami(@\w+)?\s*", re.IGNORECASE)
_MINUTES = int(CODE_LIFETIME.total_seconds() // 60)


def asks_for_ids(text: str) -> bool:
    """Whether a message is ``/whoami``, which everybody may ask."""
    return _WHOAMI.fullmatch(text) is not None


def ids_of(inbound: Inbound) -> str:
    """The ids that admit somebody, one a line, as the configuration needs them."""
    lines = [f"User: {name(inbound.user)}", f"Chat: {name(inbound.place.chat)}"]
    if inbound.circles:
        lines.append(f"Group: {', '.join(name(circle) for circle in inbound.circles)}")
    return "\n".join([*lines, f"Platform: {name(inbound.place.adapter)}"])


def with_code(inbound: Inbound, code: str) -> str:
    """Tell somebody in private how to be admitted, with a code."""
    return (
        f"You are not admitted here yet. Your code, for the next {_MINUTES} minutes: {code}\n"
        f"Whoever runs Takeback admits you by: gateway pair {code}\n"
        f"An admin can do it in a chat: /pair {code}\n\n"
        f"{_configured(inbound)}"
    )


def crowded(inbound: Inbound) -> str:
    """Tell somebody in private how to be admitted while no more codes are given."""
    return (
        f"You are not admitted here yet, and too many people have a code just now. Ask again in {_MINUTES} minutes.\n\n"
        f"{_configured(inbound)}"
    )


def without_code(inbound: Inbound) -> str:
    """Tell somebody where others read along how to be admitted."""
    return f"You are not admitted here. Write to me in private to get a code.\n\n{_configured(inbound)}"


def too_old(command: str) -> str:
    """Tell what to type instead of pressing a button."""
    return f"This button is too old to be pressed. Type instead: {command}"


def _configured(inbound: Inbound) -> str:
    """How an operator admits somebody for good, with the ids to copy."""
    adapter = name(inbound.place.adapter)
    group = f" (or this group in {adapter}.allow_groups)" if inbound.circles else ""
    return f"Or an operator lists you in config.yaml under {adapter}.allow{group}:\n{ids_of(inbound)}"
