"""Simple commands: their assignments, redirects and words, and the program they lead to."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

from engine.tools.shell.conditions import TestReader
from engine.tools.shell.grammar import Script
from engine.tools.shell.heredocs import Heredoc
from engine.tools.shell.nodes import Node
from engine.tools.shell.places import Where
from engine.tools.shell.programs.builtins import judge_declare, judge_unset
from engine.tools.shell.programs.desk import After, Call
from engine.tools.shell.programs.readers import asks_version
from engine.tools.shell.programs.registry import find_judge, known_name
from engine.tools.shell.programs.unknown import name_likely_paths
from engine.tools.shell.redirects import Redirect, judge_redirect, read_redirect
from engine.tools.shell.substitutions import backtick_script, iter_evaluated, quote_body
from engine.tools.shell.variables import (
    ASSIGNING_OPERATORS,
    find_numeric_variables,
    is_calculable,
    is_harmless_assignment,
    is_plain_expansion,
)
from engine.tools.shell.verdict import Findings, shorten
from engine.tools.shell.words import Speller, Word, literal_word

REDIRECTS = frozenset({"file_redirect", "herestring_redirect", "heredoc_redirect"})
WORDS = frozenset(
    {"word", "number", "string", "raw_string", "ansi_c_string", "translated_string", "concatenation", "expansion",
     "simple_expansion", "command_substitution", "process_substitution", "arithmetic_expansion", "brace_expression"}
)  # fmt: skip

SETS_VARIABLES = re.compile(r"=|\b(?:for|select)\b")
"""What sets a variable without any command."""

NAMED_IN_VARIABLES = ("GIT_", "DESTDIR", "PREFIX")
"""Variables whose value is a place that a command then writes to."""


@dataclass(slots=True)
class Case:
    """What all the scripts of one command share.

    `functions` are those defined so far, `left` the places each `pushd` left from, `steps` the work done.
    """

    findings: Findings
    functions: dict[str, Callable[[Where], After]] = field(default_factory=dict)
    left: list[Where] = field(default_factory=list)
    steps: int = 0


class Scripts(Protocol):
    """Reads what stands inside a command."""

    def run_all(self, nodes: Sequence[Node], where: Where) -> After:
        """Judge statements of the same script."""
        ...

    def run_script(self, text: str, where: Where) -> After:
        """Judge another script."""
        ...


class Commands:
    """Judges the simple commands of one script; it is the desk that judges report to."""

    def __init__(self, script: Script, case: Case, scripts: Scripts) -> None:
        self._script = script
        self._case = case
        self._scripts = scripts
        if not _leaves_home(script.source):
            self.findings.workspace = replace(self.findings.workspace, home=None)

    @property
    def findings(self) -> Findings:
        """What is known so far."""
        return self._case.findings

    @property
    def left(self) -> list[Where]:
        """Where each `pushd` so far left from."""
        return self._case.left

    @cached_property
    def _numeric(self) -> frozenset[str]:
        numeric = find_numeric_variables(self._script.root, self._script.source)
        self.findings.trusted |= numeric
        return numeric

    @property
    def _speller(self) -> Speller:
        return Speller(self._script.source, self.findings.workspace.home)

    def spell(self, node: Node) -> list[Word]:
        """The words of a node; a variable that holds a number is one word that is no option."""
        if node.type in {"simple_expansion", "expansion"} and is_calculable(node, self._script.source, self._numeric):
            return [Word(self._speller.raw(node), "", sure=False, lead="0")]
        if not node.named:
            return [literal_word(self._speller.raw(node))]
        return self._speller.words(node)

    # What a script holds, by kind

    def run_command(self, node: Node, redirects: Sequence[Node], where: Where) -> After:
        """Judge a simple command, with the redirects that stand behind it."""
        found = [child for child in node.children if child.type in REDIRECTS]
        opened = [self._open(redirect, where) for redirect in (*found, *redirects)]
        # An assignment with a redirect and no command has an empty name in the tree.
        named = any(child.type == "command_name" and child.end > child.start for child in node.children)
        arguments: list[Node] = [extra for redirect in opened for extra in redirect.more]
        for child in node.children:
            if child.type == "variable_assignment":
                self.assign_node(child, where, exported=named)
            elif child.type == "command_name":
                arguments.extend(child.children if named else [])
            elif child.type in WORDS or not child.named:
                arguments.append(child)
            elif child.type not in REDIRECTS:
                self.findings.unknown("the command holds something in an odd place")
                self._scripts.run_all([child], where)
        arguments.sort(key=lambda argument: argument.start)
        words = self._words(arguments, where)
        start = arguments[0].start if arguments else node.end
        for redirect in [redirect for redirect in opened if redirect.start < start]:
            judge_redirect(redirect, self.findings, where)
        after = self.run_words(words, where, self._stdin(opened))
        for redirect in [redirect for redirect in opened if redirect.start >= start]:
            judge_redirect(redirect, self.findings, where)
        return after

    def run_redirects(self, redirects: Sequence[Node], where: Where) -> None:
        """Judge the redirects of something that takes no arguments."""
        for node in redirects:
            redirect = self._open(node, where)
            if redirect.more:
                self.findings.unknown("the command holds something in an odd place")
            judge_redirect(redirect, self.findings, where)

    def run_declaration(self, node: Node, where: Where) -> None:
        """Judge `export`, `declare` and their like."""
        name = self._speller.raw(node.children[0])
        arguments = [child for child in node.children[1:] if child.type != "variable_assignment"]
        words = self._words(arguments, where)
        exported = name == "export" or any(word.text.startswith("-") and "x" in word.text for word in words)
        judge = judge_unset if name.startswith("unset") else judge_declare
        judge(Call(name, tuple(words), where), self)
        for child in node.children[1:]:
            if child.type == "variable_assignment":
                self.assign_node(child, where, exported=exported)

    def run_test(self, node: Node, where: Where) -> None:
        """Judge `[ … ]` and `[[ … ]]`."""
        self.inspect(node, where)
        reader = TestReader(self._script.source, self._numeric, self.spell)
        for target in reader.find_targets(node):
            for word in self.spell(target):
                self.findings.name_word(word, where, writes=True)
                self.findings.destructive(f"writes to {shorten(word.text if word.sure else word.raw)}")
        doubt = reader.find_doubt(node)
        if doubt:
            self.findings.unknown(doubt)

    def assign_node(self, node: Node, where: Where, *, exported: bool) -> None:
        """Judge `NAME=value`."""
        name, value = node.child("name"), node.child("value")
        if name is None:
            return
        if name.type == "subscript":
            index = name.child("index")
            self.inspect(name, where)
            if index is None or not is_calculable(index, self._script.source, self._numeric):
                self.findings.unknown("a subscript may evaluate what it is given")
            name = name.child("name") or name
        if value is not None and value.type == "array":
            self._judge_array(value)
        if value is not None:
            self.inspect(value, where)
        words = self.spell(value) if value is not None and value.type in WORDS else []
        known = words[0] if len(words) == 1 else (literal_word("") if value is None else None)
        self.assign(self._speller.raw(name), known, where, exported=exported)

    def calculate(self, nodes: Sequence[Node], where: Where) -> None:
        """Judge the expressions of `for ((…))`."""
        for node in nodes:
            self.inspect(node, where)
            targets = [child for child in node.walk() if child.type in {"variable_name", "word"}]
            for target in targets:
                self.assign(self._speller.raw(target), None, where, exported=False)
            if not all(is_calculable(child, self._script.source, self._numeric) for child in (node.children or [node])):
                self.findings.unknown("arithmetic may evaluate what it is given")

    def name_values(self, nodes: Sequence[Node], where: Where) -> list[Word]:
        """The words a loop or a `case` goes through."""
        return self._words(nodes, where)

    # What judges ask of their desk

    def run_words(self, words: Sequence[Word], where: Where, stdin: Heredoc | None = None) -> After:
        """Judge these words as a command that runs in `where`."""
        if not words:
            return After.same(where)
        name, *rest = words
        call = Call(name.text, tuple(rest), where, stdin)
        if not name.literal:
            self.findings.unknown("runs a command that is known only when it runs")
            name_likely_paths(call, self)
            return After.same(where)
        if function := self._case.functions.get(name.text):
            name_likely_paths(call, self)
            return function(where)
        known = known_name(name.text)
        if known is None:
            self.findings.unknown(f"{shorten(name.text)} is not known to be read-only")
            self.findings.name_word(name, where, writes=True)
            name_likely_paths(call, self)
            return After.same(where)
        call = replace(call, name=known)
        if asks_version(call):
            return After.same(where)
        return find_judge(known)(call, self) or After.same(where)

    def run_text(self, text: str, where: Where, *, in_shell: bool = False) -> After:
        """Judge a text as a script; `in_shell` when the running shell itself reads it, as `eval` does."""
        after = self._scripts.run_script(text, where)
        if in_shell and SETS_VARIABLES.search(text):
            self.findings.unknown("sets variables in a way that is hard to follow")
        return after if in_shell else After.same(where)

    def assign(self, name: str, value: Word | None, where: Where, *, exported: bool) -> None:
        """Judge a variable being set."""
        if name in {"HOME", "IFS"}:
            self.findings.workspace = replace(self.findings.workspace, home=None)
        if name == "CDPATH":
            self.forget_directory(name)
        if not is_harmless_assignment(name, value, exported=exported):
            self.findings.unknown(f"sets {shorten(name)}, which may change what commands do")
        if exported and value is not None and "/" in value.text and name.startswith(NAMED_IN_VARIABLES):
            self.findings.name_word(value, where, writes=True)

    def forget_directory(self, raw: str) -> None:
        """Note that the shell's directory now depends on a word nobody can know."""
        self.findings.name_unknowable(raw)

    # Words

    def inspect(self, node: Node, where: Where) -> None:
        """Judge what a word runs or evaluates while the shell makes it."""
        for part, quoted in iter_evaluated(node):
            if part.type == "arithmetic_expansion":
                self._judge_arithmetic(part, where)
            elif part.type == "expansion":
                self._judge_expansion(part, where)
            else:
                self._judge_substitution(part, where, quoted=quoted)

    def _words(self, nodes: Sequence[Node], where: Where) -> list[Word]:
        words: list[Word] = []
        for node in nodes:
            if node.children:
                self.inspect(node, where)
            spelled = self.spell(node)
            # A shell that knows no braces takes them for part of one name.
            self.findings.reaches_further |= len(spelled) > 1
            words.extend(spelled)
        return words

    def _judge_arithmetic(self, node: Node, where: Where) -> None:
        old = self._speller.raw(node).startswith("$[")
        if old or not is_calculable(node, self._script.source, self._numeric):
            self.findings.unknown("arithmetic may evaluate what it is given")
        for child in node.children:
            self.inspect(child, where)

    def _judge_expansion(self, node: Node, where: Where) -> None:
        if not is_plain_expansion(node, self._script.source, self._numeric):
            self.findings.unknown("an expansion may evaluate what it is given")
        operators = {self._speller.raw(child) for child in node.children if child.role == "operator"}
        if operators & ASSIGNING_OPERATORS:
            for child in node.children:
                if child.type == "variable_name":
                    self.findings.filled.add(self._speller.raw(child))
                    self.assign(self._speller.raw(child), None, where, exported=False)
        for child in node.children:
            self.inspect(child, where)

    def _judge_substitution(self, node: Node, where: Where, *, quoted: bool) -> None:
        raw = self._speller.raw(node).removeprefix("$")  # a dollar sign before backticks is only that
        script = backtick_script(raw[1:-1], quoted=quoted) if raw.startswith("`") else None
        if script is not None:
            self._scripts.run_script(script, where)
            return
        self._scripts.run_all(node.children, where)

    def _judge_array(self, node: Node) -> None:
        """`[index]=value` in an array evaluates the index."""
        for child in node.children:
            if child.named and self._speller.raw(child).startswith("["):
                self.findings.unknown("a subscript may evaluate what it is given")

    # Redirects

    def _open(self, node: Node, where: Where) -> Redirect:
        if node.type == "heredoc_redirect":  # one that could not be taken out: the script is doubtful already
            self._scripts.run_all(node.children, where)
        redirect = read_redirect(node, self._speller)
        for target in redirect.nodes:
            self.inspect(target, where)
        document = self._heredoc(redirect)
        if document is not None and document.expands:
            self._expand(document, where)
        return redirect

    def _heredoc(self, redirect: Redirect) -> Heredoc | None:
        number = redirect.heredoc
        documents = self._script.heredocs
        return documents[number] if number is not None and number < len(documents) else None

    def _stdin(self, redirects: Sequence[Redirect]) -> Heredoc | None:
        """The text a command reads, where the script holds it and no later redirect takes its place."""
        inputs = [redirect for redirect in redirects if redirect.is_input]
        last = max(inputs, key=lambda redirect: redirect.start, default=None)
        if last is None:
            return None
        if last.operator == "<<<" and len(last.targets) == 1 and last.targets[0].literal:
            return Heredoc(last.targets[0].text, expands=False)
        return self._heredoc(last)

    def _expand(self, document: Heredoc, where: Where) -> None:
        """Judge what a here-document runs while the shell fills it in."""
        if "$" not in document.body and "`" not in document.body:
            return
        script = quote_body(document.body)
        if script is None:
            self.findings.unknown("a here-document is hard to read")
        else:
            self._scripts.run_script(script, where)


def _leaves_home(source: bytes) -> bool:
    """Whether a script only ever reads HOME, and splits words as usual."""
    return b"IFS" not in source and source.count(b"HOME") == source.count(b"$HOME") + source.count(b"${HOME}")
