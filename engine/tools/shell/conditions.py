"""`[ … ]`, `test …` and `[[ … ]]`: harmless comparisons, but for three traps.

`[ a > b ]` writes a file called b. `-v` and, in `[[`, the numeric comparisons evaluate what they are given, down to
commands in a subscript. And a shell without `[[` reads `[[ a || rm x ]]` as two commands.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from engine.tools.shell.nodes import Node
from engine.tools.shell.variables import is_calculable
from engine.tools.shell.words import Word

OPERATORS = frozenset(
    {"=", "==", "!=", "<", ">", "-a", "-o", "!", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"}
)
NUMERIC = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
EVALUATING = frozenset({"-v", "-R"})
UNARY = frozenset({"-" + letter for letter in "abcdefghknoprstuvwxzGLNORS"})

BRACKET_TOKENS = frozenset({"[", "]", "=", "==", "!=", "!"})
DOUBLE_TOKENS = frozenset({"[[", "]]", "=", "==", "!=", "=~", "!", "&&", "||"})

OPERANDS = frozenset(
    {"word", "number", "string", "raw_string", "ansi_c_string", "simple_expansion", "expansion", "concatenation",
     "command_substitution", "arithmetic_expansion", "test_operator", "regex", "extglob_pattern"}
)  # fmt: skip

GROUPING = frozenset({"test_command", "unary_expression", "binary_expression"})


def judge_test_words(words: Sequence[Word]) -> str | None:
    """Why `test` with these words might do more than compare; None when it cannot."""
    texts = [word.text if word.literal else None for word in words]
    for index, word in enumerate(words):
        before = texts[index - 1] if index else None
        after = texts[index + 1] if index + 1 < len(words) else None
        if texts[index] in EVALUATING and not (after and after.isidentifier()):
            return "a test may evaluate what it is given"
        if word.many and not word.glob:
            return "a test's words are known only when it runs"
        if not word.literal and before not in OPERATORS | UNARY and after not in OPERATORS:
            return "a test's operator is known only when it runs"
    return None


@dataclass(frozen=True, slots=True)
class TestReader:
    """Judges the tests of one script, given how its words are spelled and which variables hold only numbers."""

    source: bytes
    numeric: frozenset[str]
    spell: Callable[[Node], list[Word]]

    def find_doubt(self, node: Node) -> str | None:
        """Why a test command might do more than compare; None when it cannot."""
        parts = _flatten(node)
        tokens = {self._raw(part) for part in parts if not part.named}
        inner = parts[1:-1]
        if any(part.named and part.type not in OPERANDS for part in parts):
            return "a test is more than a row of comparisons"
        if tokens <= BRACKET_TOKENS:
            return judge_test_words([word for part in inner for word in self.spell(part)])
        if tokens <= DOUBLE_TOKENS and self._raw(parts[0]) == "[[":
            return self._judge_double(inner)
        return "holds an expression that another shell would run as commands"

    def find_targets(self, node: Node) -> list[Node]:
        """The files that `[ a > b ]` writes: what stands to the right of a `>`."""
        parts = _flatten(node)
        if self._raw(parts[0]) != "[":
            return []
        return [target for token, target in pairwise(parts) if not token.named and self._raw(token) in {">", ">>"}]

    def _judge_double(self, parts: Sequence[Node]) -> str | None:
        texts = [self._raw(part) for part in parts]
        for index, text in enumerate(texts):
            after = texts[index + 1] if index + 1 < len(texts) else ""
            if text == "||" and after not in UNARY:
                return "holds an expression that another shell would run as commands"
            if text in EVALUATING and not after.isidentifier():
                return "a test may evaluate what it is given"
            if text in NUMERIC and parts[index].type == "test_operator":
                sides = [*parts[max(0, index - 1) : index], *parts[index + 1 : index + 2]]
                if not all(is_calculable(side, self.source, self.numeric) for side in sides):
                    return "a test may evaluate what it is given"
        return None

    def _raw(self, node: Node) -> str:
        return self.source[node.start : node.end].decode("utf-8", "surrogateescape")


def _flatten(node: Node) -> list[Node]:
    """The operators and operands of a test, in order."""
    if node.type not in GROUPING or not node.children:
        return [node]
    return [part for child in node.children for part in _flatten(child)]
