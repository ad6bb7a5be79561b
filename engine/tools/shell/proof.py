"""Whether a shell would cut this text into the same pieces as the grammar did.

A grammar that errs in silence is the one way a command could hide: text it takes for a comment, a string or one word
while the shell runs it. So every byte is accounted for: each leaf must be what its kind allows in the shell's own
lexical rules, and what lies between two leaves must be blank where the shell wants a blank, and nothing else. Where
that does not hold the command is unknown, whatever the tree says.
"""

from collections.abc import Callable

from engine.tools.shell.grammar import Script
from engine.tools.shell.nodes import Node

BLANKS = b" \t"
OPERATORS = frozenset(b"|&;()<>\n`")
WORD_BREAKS = OPERATORS | frozenset(BLANKS)
NAME_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
STARTS_EXPANSION = NAME_BYTES | frozenset(b"{([*@#?$!-")

SPECIAL_IN_WORD = frozenset(" \t\n|&;()<>'\"`$")
UNSAFE_IN_EXPANSION = frozenset("\\`$'\"{}()<>|&;")
PATTERN_CHARACTERS = frozenset("._-*?[]^+/,:=@%~!")
REGEX_CHARACTERS = PATTERN_CHARACTERS | frozenset("()|$")

JOINED = frozenset(
    {"concatenation", "simple_expansion", "expansion", "brace_expression", "subscript", "variable_assignment", "number"}
)
"""Nodes whose children touch: a blank inside them would end the word."""

ONE_LINE = frozenset(
    {
        "command",
        "command_name",
        "redirected_statement",
        "file_redirect",
        "herestring_redirect",
        "declaration_command",
        "unset_command",
        "negated_command",
        "variable_assignments",
        "test_command",
        "unary_expression",
        "binary_expression",
        "parenthesized_expression",
        "postfix_expression",
        "ternary_expression",
        "arithmetic_expansion",
    }
)
"""Nodes that a line end would cut in two."""

ARITHMETIC = frozenset({"arithmetic_expansion", "subscript", "c_style_for_statement"})
BODIES = frozenset({"do_group", "compound_statement", "command_substitution", "process_substitution"})


def find_doubt(script: Script) -> str | None:
    """Why a shell might read this script differently; None when it would not."""
    root = script.root
    edges = script.source[: root.start] + script.source[root.end :]
    if edges.replace(b"\\\n", b"").strip(BLANKS + b"\n"):
        return "holds text outside every command"
    return _Prover(script.source).node(root, root, "")


class _Prover:
    """Checks one source. `inside` is what surrounds a node: "", or the lexical world that is not ordinary words."""

    def __init__(self, source: bytes) -> None:
        self._source = source

    def node(self, node: Node, parent: Node, inside: str) -> str | None:
        if node.type == "ERROR":
            return "is not complete shell, or not shell this program reads"
        if node.missing and not _is_unnamed(parent):
            return "is not complete shell"
        if node.missing:
            return None
        if not node.children:
            return self._leaf(node, parent, inside)
        if node.type == "command" and len(node.children) == 1 and node.start == node.end:
            return "is not complete shell"
        inside = _world(node, inside)
        doubt = self._gaps(node, inside)
        for child in node.children:
            doubt = doubt or self.node(child, node, inside)
        return doubt

    def _gaps(self, node: Node, inside: str) -> str | None:
        at = node.start
        previous: Node | None = None
        for child in node.children:
            gap = self._source[at : child.start]
            doubt = self._gap(node, gap)
            if doubt:
                return doubt
            if previous and not gap and inside != "arithmetic" and self._runs_together(node, previous, child):
                return "holds words that run together"
            at, previous = child.end, child
        return self._gap(node, self._source[at : node.end])

    def _gap(self, node: Node, gap: bytes) -> str | None:
        if not gap:
            return None
        if node.type == "string":
            return None if is_quoted_text(_text(gap)) else "holds a string that is hard to read"
        if node.type in JOINED:
            return "holds a word with a gap"
        rest = gap.replace(b"\\\n", b"")
        if not rest:
            return "holds words that run together"
        return "holds text outside every word" if rest.strip(_blanks(node)) else None

    def _runs_together(self, node: Node, left: Node, right: Node) -> bool:
        if node.type in JOINED or node.type == "string" or left.start == left.end or right.start == right.end:
            return False
        return self._source[left.end - 1] not in OPERATORS and self._source[right.start] not in OPERATORS

    def _leaf(self, node: Node, parent: Node, inside: str) -> str | None:
        text = _text(self._source[node.start : node.end])
        what = node.type.replace("_", " ")
        if not node.named:
            return self._token(node, parent, text)
        check = LEAVES.get(node.type)
        if check is None:
            return None if node.type == "program" else f"holds a {what} in an odd place"
        if text.startswith("#") and node.type in {"comment", "word"}:
            starts_word = node.start == 0 or self._source[node.start - 1] in WORD_BREAKS
            if starts_word != (node.type == "comment"):
                return "holds a comment that may not be one"
        if inside == "expansion":
            allowed = node.type not in UNREADABLE_IN_EXPANSION and (
                node.type not in TEXTS or UNSAFE_IN_EXPANSION.isdisjoint(text)
            )
        elif node.type == "regex":
            allowed = inside == "match" and is_regex(text)
        else:
            allowed = check(text)
        return None if allowed else f"holds a {what} that is hard to read"

    def _token(self, node: Node, parent: Node, text: str) -> str | None:
        if text != node.type or text == "``":
            return "holds a token that is hard to read"
        if text == "$" and parent.type != "simple_expansion":
            following = self._source[node.end : node.end + 1]
            quote = following == b"'" or (following == b'"' and parent.type != "string")
            if quote or (following and following[0] in STARTS_EXPANSION):
                return "holds a dollar sign that is hard to read"
        return None


def _is_unnamed(parent: Node) -> bool:
    """Whether this may be the empty name of an assignment that has a redirect and no command."""
    return parent.type == "command_name" and parent.start == parent.end


def _world(node: Node, inside: str) -> str:
    if node.type in ARITHMETIC:
        return "arithmetic"
    if node.type in {"expansion", "string"}:
        return node.type
    if node.type in BODIES:
        return ""
    if node.type == "binary_expression" and any(child.type == "regex" for child in node.children):
        return "match"
    return inside


def _blanks(node: Node) -> bytes:
    return BLANKS if node.type in ONE_LINE else BLANKS + b"\n"


def _text(source: bytes) -> str:
    return source.decode("utf-8", "surrogateescape")


def is_bare_word(text: str) -> bool:
    """Whether the shell reads this as one unquoted word, or a part of one."""
    if "\\" not in text:
        return SPECIAL_IN_WORD.isdisjoint(text)
    at = 0
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text[at] in SPECIAL_IN_WORD:
            return False
        at += 1
    return at == len(text)  # else it ends in a backslash that quotes what follows


def is_quoted_text(text: str) -> bool:
    """Whether this stays text inside double quotes."""
    at = 0
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text[at] in '"`':
            return False
        elif text[at] == "$":
            following = text[at + 1 : at + 2].encode("utf-8", "surrogateescape")
            if not following or following[0] in STARTS_EXPANSION:
                return False
        at += 1
    return at == len(text)


def is_regex(text: str) -> bool:
    """Whether this regular expression means nothing to a shell that has no `[[`: alternatives stand in groups."""
    bar, group = text.find("|"), text.find("(")
    grouped = bar < 0 or 0 <= group < bar
    return grouped and "$(" not in text and all(_is_word_character(c) or c in REGEX_CHARACTERS for c in text)


def _is_pattern(text: str) -> bool:
    return all(_is_word_character(character) or character in PATTERN_CHARACTERS for character in text)


def _is_word_character(character: str) -> bool:
    return character.isalnum() and character.isascii()


def _is_raw_string(text: str) -> bool:
    return len(text) > 1 and text[0] == text[-1] == "'" and "'" not in text[1:-1]


def _is_ansi_string(text: str) -> bool:
    """Without an escaped quote: a shell that does not know `$'…'` would end the string there."""
    body = text[2:-1]
    closed = (len(body) - len(body.rstrip("\\"))) % 2 == 0
    return closed and text.startswith("$'") and _is_raw_string(text[1:])


def _is_name(text: str) -> bool:
    return text.isascii() and (text.isidentifier() or text.isdigit())


LEAVES: dict[str, Callable[[str], bool]] = {
    "word": is_bare_word,
    "number": is_bare_word,
    "test_operator": is_bare_word,
    "extglob_pattern": _is_pattern,
    "regex": _is_pattern,
    "string_content": is_quoted_text,
    "raw_string": _is_raw_string,
    "ansi_c_string": _is_ansi_string,
    "variable_name": _is_name,
    "special_variable_name": lambda text: len(text) == 1,
    "file_descriptor": str.isdigit,
    "comment": lambda text: "\n" not in text,
}
"""What each kind of leaf may hold."""

TEXTS = frozenset({"word", "number", "regex", "extglob_pattern", "test_operator"})

UNREADABLE_IN_EXPANSION = frozenset({"raw_string", "ansi_c_string", "comment"})
"""Inside double quotes `"${x:-'…'}"` single quotes quote nothing."""
