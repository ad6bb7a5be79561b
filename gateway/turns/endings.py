"""The word of this program that a turn may end with: that it failed, was stopped or cut off, and why.

People read it below what the agent said. It is none of the agent's own words, and an agent that is shown it as such
would stand by it, or learn to write the like.
"""

FAILED = "✖"
STOPPED = "⏹"
INTERRUPTED = "⏸"
CUT_OFF = "✂"

_MARKS = (FAILED, STOPPED, INTERRUPTED, CUT_OFF)


def parted(text: str) -> tuple[str, str]:
    """Part what was said in a reply, without its receipt, from the word on how the turn ended; either may be empty."""
    paragraphs = text.strip("\n").split("\n\n")
    if not paragraphs[-1].startswith(_MARKS):
        return text, ""
    return "\n\n".join(paragraphs[:-1]), paragraphs[-1]
