"""The proof refuses a tree that takes text for something the shell would not.

The trees here are made by hand: each says something false about its source, as a mistaken grammar might.
"""

import pytest

from engine.tools.shell.grammar import Script, parse
from engine.tools.shell.nodes import Node
from engine.tools.shell.proof import find_doubt


def leaf(kind: str, start: int, end: int, *, named: bool = True, role: str = "") -> Node:
    return Node(kind, start, end, named=named, missing=False, role=role)


def branch(kind: str, *children: Node, start: int | None = None, end: int | None = None) -> Node:
    first = children[0].start if start is None else start
    last = children[-1].end if end is None else end
    return Node(kind, first, last, named=True, missing=False, role="", children=list(children))


def doubt(source: str, *statements: Node) -> str | None:
    return find_doubt(Script(source.encode(), branch("program", *statements)))


def echo(*arguments: Node) -> Node:
    return branch("command", branch("command_name", leaf("word", 0, 4)), *arguments)


def test_a_true_tree_has_no_doubt():
    assert doubt("echo a", echo(leaf("word", 5, 6))) is None


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("echo a;b", "word"),
        ("echo a b", "word"),
        ("echo a\nb", "word"),
        ("echo a`b", "word"),
        ("echo $(b)", "word"),
        ("echo 'b'", "word"),
        ('echo "b"', "word"),
        ("echo b\\", "word"),
        ("echo #b", "word"),
        ("echo 'a'b'", "raw_string"),
        ("echo 'a", "raw_string"),
        ("echo $'a\\'", "ansi_c_string"),
        ("echo $'a\\'b'", "ansi_c_string"),
        ("echo a;b", "number"),
        ("echo é", "variable_name"),
        ("echo a;b", "extglob_pattern"),
        ("echo a", "regex"),
        ("echo a", "heredoc_body"),
        ("echo a", "something_new"),
        ("echo a", ";"),
        ("echo 2x", "file_descriptor"),
    ],
)
def test_a_leaf_that_its_kind_does_not_allow_is_doubted(source, kind):
    last = leaf(kind, 5, len(source.encode()), named=kind != ";")

    assert doubt(source, echo(last)) is not None


def test_a_comment_in_the_middle_of_a_word_is_doubted():
    assert doubt("echo a#b", echo(leaf("word", 5, 6)), leaf("comment", 6, 8)) is not None
    assert doubt("echo a #b", echo(leaf("word", 5, 6)), leaf("comment", 7, 9)) is None
    assert doubt("#a\necho", leaf("comment", 0, 7)) is not None


def test_text_that_no_leaf_holds_is_doubted():
    assert doubt("echo a x", echo(leaf("word", 5, 6)), leaf("comment", 8, 8)) is not None
    assert doubt("echo x a", echo(leaf("word", 7, 8))) is not None
    assert doubt("echo a", echo()) is not None
    assert find_doubt(Script(b"x; echo", branch("program", echo(), start=3, end=7))) is not None


def test_words_that_touch_are_doubted():
    assert doubt("echo ab", echo(leaf("word", 5, 6), leaf("word", 6, 7))) is not None
    assert doubt("echo a\\\nb", echo(leaf("word", 5, 6), leaf("word", 8, 9))) is not None


def test_a_command_that_goes_on_over_a_line_end_is_doubted():
    assert doubt("echo a\nb", echo(leaf("word", 5, 6), leaf("word", 7, 8))) is not None
    assert doubt("echo a \\\n b", echo(leaf("word", 5, 6), leaf("word", 10, 11))) is None


def test_a_string_is_text_to_its_end():
    def string(source: str, start: int, end: int) -> str | None:
        quotes = leaf('"', start, start + 1, named=False), leaf('"', end - 1, end, named=False)
        content = leaf("string_content", start + 1, end - 1)
        return doubt(source, echo(branch("string", quotes[0], content, quotes[1])))

    assert string('echo "a b;c"', 5, 12) is None
    assert string('echo "a"b"', 5, 10) is not None
    assert string('echo "a$b"', 5, 10) is not None
    assert string('echo "a`b"', 5, 10) is not None
    assert string('echo "a\\"', 5, 9) is not None


def test_more_continued_lines_than_are_joined_are_doubted():
    script = parse("sort " + "x\\\ny " * 100 + "-\\\no out")

    assert script is not None
    assert find_doubt(script) is not None
