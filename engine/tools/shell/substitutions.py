"""Commands inside words: `$(…)`, backticks, `<(…)`, and what a here-document expands."""

import time
from collections.abc import Iterator

from engine.tools.shell.grammar import PARSE_SECONDS, parse
from engine.tools.shell.nodes import Node

EVALUATED = frozenset({"command_substitution", "process_substitution", "expansion", "arithmetic_expansion"})
"""Parts of a word that the shell evaluates, beyond putting in a variable's value."""

BACKTICK_ESCAPES = frozenset("`\\$")

MAX_QUOTES = 48
"""Double quotes a here-document may hold before it is too laborious to read."""


def iter_evaluated(node: Node, *, quoted: bool = False) -> Iterator[tuple[Node, bool]]:
    """The outermost evaluated parts of a word, each with whether it stands inside double quotes."""
    if node.type in EVALUATED:
        yield node, quoted
        return
    for child in node.children:
        if child.children:
            yield from iter_evaluated(child, quoted=quoted or node.type == "string")


def backtick_script(text: str, *, quoted: bool) -> str | None:
    """The script inside backticks, as the shell reads it; None when it is just the text between them.

    A backslash there is taken away before the script is parsed, so that backticks can hold backticks.
    """
    if "\\" not in text:
        return None
    escapes = BACKTICK_ESCAPES | {'"'} if quoted else BACKTICK_ESCAPES
    out: list[str] = []
    at = 0
    while at < len(text):
        if text[at] == "\\" and at + 1 < len(text) and text[at + 1] in escapes:
            at += 1
        out.append(text[at])
        at += 1
    return "".join(out)


def quote_body(body: str) -> str | None:
    """A script that expands what this here-document body expands; None where that is too laborious to find.

    The body becomes a double-quoted string. Its own double quotes, which mean nothing in a here-document, are blanked
    one by one wherever they would end that string; those inside `$(…)` do not, and stay.
    """
    script = f': "{body}"'
    deadline = time.monotonic() + PARSE_SECONDS
    for _ in range(MAX_QUOTES):
        parsed = parse(script) if time.monotonic() < deadline else None
        if parsed is None or parsed.source != script.encode("utf-8", "surrogateescape"):
            return None
        string = next((node for node in parsed.root.walk() if node.type == "string"), None)
        if string is None:
            return None
        if string.end == len(parsed.source):
            return script
        before = parsed.source[: string.end - 1].decode("utf-8", "surrogateescape")
        after = parsed.source[string.end :].decode("utf-8", "surrogateescape")
        script = f"{before} {after}"
    return None
