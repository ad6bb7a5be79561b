"""Parsing: the text of a command into a tree, with tree-sitter's bash grammar.

The grammar is good and not perfect. Four things that the shell accepts it stumbles over, and each is put into a form
it reads, in the source itself, before the final parse: here-documents (taken out, bodies kept aside), `<>` (written as
`>>`, which also opens for writing), `time` and `coproc` before a compound command (blanked) and lines continued in the
middle of a word (joined). Whether the grammar then read the text as a shell would is for `proof` to say.
"""

import functools
import time
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from engine.tools.shell.heredocs import HEREDOC_MARK, Heredoc, cut_heredoc, heredoc_number, without_bodies
from engine.tools.shell.nodes import Node

if TYPE_CHECKING:
    from tree_sitter import Language, Tree, TreeCursor

MAX_SOURCE_BYTES = 1 << 20
"""What is parsed at all; a longer command is unknown."""

MAX_SCRIPT_BYTES = 1 << 16
"""What is read after the here-documents are out; a longer script is unknown."""

MAX_DEPTH = 150
"""How deep a tree may nest, so that walking it cannot exhaust the stack."""

MAX_REPAIRS = 64

PARSE_SECONDS = 0.5
"""How long parsing and repairing may go on; beyond this the text is unknown."""

LABORIOUS = {b"|": (1500, 6000), b"<<": (300, 3000)}
"""The parser needs quadratic time for these where a text is broken, and cannot be stopped while it does. So many are
read in what looks like script, so many in all: a here-document full of tables is no long pipeline."""

EXPANSIONS = frozenset({"command_substitution", "expansion", "simple_expansion", "arithmetic_expansion"})

KEYWORDS_BEFORE_COMPOUND = frozenset({"time", "coproc"})

COMPOUND_STARTS = frozenset(
    {"{", "(", "((", "[[", "!", "if", "for", "while", "until", "case", "select", "time", "coproc"}
)


@dataclass(slots=True)
class Script:
    """One text, parsed. `doubt` says why its tree may not be what a shell would read, if that is so."""

    source: bytes
    root: Node
    heredocs: list[Heredoc] = field(default_factory=list)
    doubt: str | None = None


def parse(text: str) -> Script | None:
    """The parsed form of a command; None where it is too long, too deep, too slow, or not text at all."""
    try:
        source = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return None
    if len(source) > MAX_SOURCE_BYTES or _is_laborious(source):
        return None
    doubt = _doubtful_character(text)
    heredocs: list[Heredoc] = []
    deadline = time.monotonic() + PARSE_SECONDS
    root = _tree(source, deadline)
    for _ in range(MAX_REPAIRS):
        if root is None:
            return None
        repaired = _repair(source, root, heredocs)
        if repaired is None:
            break
        source, repair_doubt = repaired
        doubt = doubt or repair_doubt
        root = _tree(source, deadline)
    if root is None or len(source) > MAX_SCRIPT_BYTES:
        return None
    if _count_documents(source, root) != len(heredocs):
        # What was taken for a here-document stands in quotes or in a comment: its lines were commands.
        doubt = doubt or "holds something like a here-document"
    return Script(source, root, heredocs, doubt)


def _count_documents(source: bytes, root: Node) -> int:
    """How many redirects of the final tree read a here-document that was taken out."""
    targets = [
        _text(source, child)
        for node in root.walk()
        if node.type == "file_redirect" and any(child.type == "<" for child in node.children)
        for child in node.children
        if child.type == "word"
    ]
    return sum(heredoc_number(target) is not None for target in targets)


def _is_laborious(source: bytes) -> bool:
    for operator, (most_in_script, most) in LABORIOUS.items():
        count = source.count(operator)
        if count > most or (count > most_in_script and without_bodies(source).count(operator) > most_in_script):
            return True
    return False


def _doubtful_character(text: str) -> str | None:
    for character in text:
        if character < " " and character not in "\t\n":
            return "holds a control character"
        if character == HEREDOC_MARK:
            return "holds a private character"
    return None


def _repair(source: bytes, root: Node, heredocs: list[Heredoc]) -> tuple[bytes, str | None] | None:
    """The source with the first thing repaired that the grammar does not read, and any doubt that leaves."""
    if b"<<" in source:
        operator = _first_heredoc(root)
        cut = cut_heredoc(source, operator, len(heredocs)) if operator else None
        if cut:
            heredocs.append(cut.heredoc)
            return cut.source, cut.doubt
    return _join_line(source, root) or _write_read_write(source, root) or _blank_keyword(source, root)


def _first_heredoc(root: Node) -> Node | None:
    """The operator of the first here-document, whatever the grammar made of what follows it."""
    operators = [
        left
        for node in root.walk()
        for left, right in pairwise(node.children)
        if left.type in {"<<", "<<-"} and right.type == "heredoc_start"
    ]
    return min(operators, key=lambda operator: operator.start, default=None)


def _join_line(source: bytes, root: Node) -> tuple[bytes, None] | None:
    if b"\\\n" not in source:
        return None
    for node in root.walk():
        for left, right in pairwise(node.children):
            gap = source[left.end : right.start]
            if gap and not gap.replace(b"\\\n", b""):
                return source[: left.end] + source[right.start :], None
    return None


def _write_read_write(source: bytes, root: Node) -> tuple[bytes, None] | None:
    if b"<>" not in source:
        return None
    for node in root.walk():
        if node.type == "file_redirect":
            for child in node.children:
                if child.type == "<" and source[child.start : child.start + 2] == b"<>":
                    return source[: child.start] + b">>" + source[child.start + 2 :], None
    return None


def _blank_keyword(source: bytes, root: Node) -> tuple[bytes, str | None] | None:
    for node in root.walk():
        if node.type == "negated_command":
            start, end, doubt = node.start, _negated_compound(source, node), "negates a compound command"
        elif node.type == "command":
            start, end = node.start, _compound_start(source, node)
            doubt = "starts a coprocess" if source.startswith(b"coproc", start) else ""
        else:
            continue
        if end is not None:
            return source[:start] + b" " * (end - start) + source[end:], doubt or None
    return None


def _negated_compound(source: bytes, negation: Node) -> int | None:
    """Where the compound command behind `!` starts, if the grammar took its keyword for a program."""
    command = negation.named_children()[0] if negation.named_children() else None
    name = command.child("name") if command and command.type == "command" else None
    return name.start if name and _text(source, name) in COMPOUND_STARTS else None


def _compound_start(source: bytes, command: Node) -> int | None:
    """Where the compound command after `time [-p]` or `coproc [NAME]` starts, if one does."""
    name = command.child("name")
    keyword = _text(source, name) if name and name.start == command.start else ""
    if keyword not in KEYWORDS_BEFORE_COMPOUND:
        return None
    skippable = 1
    for child in command.children[1:]:
        text = _text(source, child)
        if child.type == "subshell" or text in COMPOUND_STARTS or text.startswith(("(", "{")):
            return child.start
        if not skippable or (keyword == "time" and text != "-p"):
            return None
        skippable = 0
    return None


def _text(source: bytes, node: Node) -> str:
    return source[node.start : node.end].decode("utf-8", "replace")


def _tree(source: bytes, deadline: float) -> Node | None:
    from tree_sitter import Parser

    if time.monotonic() > deadline:
        return None
    try:
        tree = Parser(_language()).parse(
            lambda offset, _point: source[offset:],
            progress_callback=lambda _offset, _has_error: time.monotonic() > deadline,
        )
    except ValueError:  # cancelled by the callback
        return None
    return _copy(tree, source)


@functools.cache
def _language() -> "Language":
    import tree_sitter_bash
    from tree_sitter import Language

    return Language(tree_sitter_bash.language())


def _copy(tree: "Tree", source: bytes) -> Node | None:
    """The tree as plain values; None where it is deeper than the walkers go."""
    cursor = tree.walk()
    root = _node(cursor, source)
    open_nodes = [root]
    descend = True
    while open_nodes:
        if descend and cursor.goto_first_child():
            child = _node(cursor, source)
            open_nodes[-1].children.append(child)
            open_nodes.append(child)
            if len(open_nodes) > MAX_DEPTH:
                return None
        elif len(open_nodes) > 1 and cursor.goto_next_sibling():
            open_nodes.pop()
            child = _node(cursor, source)
            open_nodes[-1].children.append(child)
            open_nodes.append(child)
            descend = True
        else:
            open_nodes.pop()
            cursor.goto_parent()
            descend = False
    return root


def _node(cursor: "TreeCursor", source: bytes) -> Node:
    node = cursor.node
    if node is None:  # a cursor always stands on a node; the binding's types cannot say so
        return Node("ERROR", 0, 0, named=True, missing=True, role="")
    start, end = node.start_byte, node.end_byte
    if not node.is_named or node.type in EXPANSIONS:
        # In a string the grammar hands the blanks before `$(` and the closing quote to these tokens.
        while start < end and source[start] in b" \t\n":
            start += 1
    return Node(node.type, start, end, node.is_named, node.is_missing, cursor.field_name or "")
