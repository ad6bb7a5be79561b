"""A script, read from its first command to its last: every command judged where it would run.

The reading follows the shell: what stands on the right of `&&` runs where a success on the left leaves the shell, a
subshell's `cd` ends with it. Every command counts, whether or not it would be reached.
"""

from collections.abc import Callable, Sequence

from engine.tools.shell.commands import REDIRECTS, Case, Commands
from engine.tools.shell.grammar import Script, parse
from engine.tools.shell.nodes import Node
from engine.tools.shell.places import MAX_DIRECTORIES, Where
from engine.tools.shell.programs.desk import After
from engine.tools.shell.programs.registry import JUDGES
from engine.tools.shell.proof import find_doubt
from engine.tools.shell.verdict import shorten

MAX_NESTING = 8
"""How many scripts may stand inside one another (`sh -c "sh -c …"`) before the command is unknown."""

MAX_STEPS = 20_000
"""Functions that call functions can make a short text run for ever; reading it stops here."""

SCRIPT_STEP_CHARACTERS = 100
"""Parsing so much text counts as one more step."""

SHOWN_BYTES = 200
"""So much of a script that is not read to its end stands for the paths it may name."""


def read_script(text: str, case: Case, where: Where, depth: int = 0) -> After:
    """Read one script; `depth` counts the scripts it stands in."""
    case.steps += 1 + len(text) // SCRIPT_STEP_CHARACTERS
    script = parse(text) if depth < MAX_NESTING and case.steps < MAX_STEPS else None
    if script is None:
        case.findings.unknown("the command is too long or too nested to read")
        case.findings.name_unknowable(shorten(text))
        return After.same(where)
    doubt = script.doubt or find_doubt(script)
    if doubt:
        case.findings.unknown(f"the command {doubt}")
        # What a shell makes of it may name other paths than those that are found here.
        case.findings.name_unknowable(shorten(text))
    return Reading(script, case, depth).run_all([script.root], where)


class Reading:
    """Follows the control flow of one script."""

    def __init__(self, script: Script, case: Case, depth: int) -> None:
        self._source = script.source
        self._case = case
        self._depth = depth
        self._commands = Commands(script, case, self)
        self._handlers: dict[str, Callable[[Node, Where, Sequence[Node]], After]] = {
            "command": lambda node, where, redirects: self._commands.run_command(node, redirects, where),
            "redirected_statement": self._run_redirected,
            "list": self._run_list,
            "pipeline": self._run_pipeline,
            "negated_command": self._run_negated,
            "function_definition": self._run_definition,
            "declaration_command": self._run_declaration,
            "unset_command": self._run_declaration,
            "variable_assignment": self._run_assignments,
            "variable_assignments": self._run_assignments,
            "test_command": self._run_test,
            "compound_statement": self._run_group,
            "program": self._run_group,
            "do_group": self._run_group,
            "subshell": self._run_subshell,
            "if_statement": self._run_if,
            "while_statement": self._run_while,
            "for_statement": self._run_for,
            "c_style_for_statement": self._run_c_style_for,
            "case_statement": self._run_case,
        }

    def run_all(self, nodes: Sequence[Node], where: Where) -> After:
        """Judge statements in order, each where the one before leaves the shell."""
        after = After.same(where)
        for index, node in enumerate(nodes):
            if not node.named or node.type == "comment":
                continue
            following = nodes[index + 1] if index + 1 < len(nodes) else None
            start = self._bounded(after.either)
            after = self.run(node, start)
            if following is not None and following.type == "&":
                self._case.findings.unwaited_job = True
                after = After.same(start)
        return after

    def run_script(self, text: str, where: Where) -> After:
        """Judge another script."""
        return read_script(text, self._case, where, self._depth + 1)

    def run(self, node: Node, where: Where, redirects: Sequence[Node] = ()) -> After:
        """Judge one statement, with the redirects that stand behind it."""
        self._case.steps += 1
        if self._case.steps > MAX_STEPS:
            self._case.findings.unknown("the command is too long or too nested to read")
            self._case.findings.name_unknowable(shorten(self._source[:SHOWN_BYTES].decode(errors="replace")))
            return After.same(where)
        handler = self._handlers.get(node.type)
        if handler is None:
            return self._search(node, where)
        return handler(node, where, redirects)

    def _bounded(self, where: Where) -> Where:
        if len(where) <= MAX_DIRECTORIES:
            return where
        self._commands.forget_directory("cd")
        return frozenset(sorted(where)[:MAX_DIRECTORIES])

    def _search(self, node: Node, where: Where) -> After:
        """Judge whatever commands are found in something that is not shell as the grammar knows it."""
        if node.type in REDIRECTS:
            self._commands.run_redirects([node], where)
        elif node.children and node.type != "heredoc_body":
            self.run_all(node.children, where)
        return After.same(where)

    # Commands and what joins them

    def _run_redirected(self, node: Node, where: Where, redirects: Sequence[Node]) -> After:
        own = [child for child in node.children if child.type in REDIRECTS]
        body = node.child("body")
        if body is None:
            self._commands.run_redirects([*own, *redirects], where)
            return After.same(where)
        return self.run(body, where, [*own, *redirects])

    def _run_list(self, node: Node, where: Where, redirects: Sequence[Node]) -> After:
        left, right = node.named_children()[:1], node.named_children()[1:]
        operator = next((child.type for child in node.children if not child.named), "")
        first = self.run_all(left, where)
        start = first.ok if operator == "&&" else first.bad
        second = self._run_last(right, self._bounded(start), redirects)
        if operator == "&&":
            return After(second.ok, first.bad | second.bad)
        return After(first.ok | second.ok, second.bad)

    def _run_last(self, nodes: Sequence[Node], where: Where, redirects: Sequence[Node]) -> After:
        """Judge statements of which the last has the redirects: they bind to it alone."""
        statements = [node for node in nodes if node.type != "comment"]
        if not statements:
            return After.same(where)
        after = self.run_all(statements[:-1], where)
        return self.run(statements[-1], after.either, redirects)

    def _run_pipeline(self, node: Node, where: Where, redirects: Sequence[Node]) -> After:
        parts = node.named_children()
        for part in parts[:-1]:
            self.run_all([part], where)
        self._run_last(parts[-1:], where, redirects)
        return After.same(where)

    def _run_negated(self, node: Node, where: Where, redirects: Sequence[Node]) -> After:
        after = self._run_last(node.named_children(), where, redirects)
        return After(after.bad, after.ok)

    def _run_group(self, node: Node, where: Where, redirects: Sequence[Node]) -> After:
        self._commands.run_redirects(redirects, where)
        if any(child.type == "((" for child in node.children):
            # To a shell without this form it is a subshell in a subshell, whose first word is a command.
            self._case.findings.unknown("holds an expression that another shell would run as commands")
        return self.run_all(node.children, where)

    def _run_subshell(self, node: Node, where: Where, redirects: Sequence[Node]) -> After:
        self._run_group(node, where, redirects)
        return After.same(where)

    def _run_test(self, node: Node, where: Where, redirects: Sequence[Node]) -> After:
        self._commands.run_test(node, where)
        self._commands.run_redirects(redirects, where)
        return After.same(where)

    def _run_declaration(self, node: Node, where: Where, redirects: Sequence[Node]) -> After:
        self._commands.run_declaration(node, where)
        self._commands.run_redirects(redirects, where)
        return After.same(where)

    def _run_assignments(self, node: Node, where: Where, redirects: Sequence[Node]) -> After:
        single = node.type == "variable_assignment"
        for child in [node] if single else node.named_children():
            self._commands.assign_node(child, where, exported=False)
        self._commands.run_redirects(redirects, where)
        return After.same(where)

    # Functions

    def _run_definition(self, node: Node, where: Where, redirects: Sequence[Node]) -> After:
        name_node, body = node.child("name"), node.child("body")
        if name_node is None or body is None:
            return self._search(node, where)
        name = self._source[name_node.start : name_node.end].decode("utf-8", "surrogateescape")
        if name in JUDGES:
            self._case.findings.unknown(f"redefines {name}")
        function = _Function(self, body, [*node.all("redirect"), *redirects])
        self._case.functions[name] = function
        function(where)
        return After.same(where)

    # Compound commands

    def _run_if(self, node: Node, where: Where, redirects: Sequence[Node]) -> After:
        self._commands.run_redirects(redirects, where)
        clauses = [child for child in node.children if child.type in {"elif_clause", "else_clause"}]
        own = [child for child in node.children if child not in clauses]
        condition, body = _split(own, "then")
        chosen = self.run_all(condition, where)
        ends = self.run_all(body, chosen.ok).either
        rest = chosen.bad
        for clause in clauses:
            condition, body = _split(clause.children, "then")
            if clause.type == "else_clause":
                condition, body = [], clause.children
            tested = self.run_all(condition, rest)
            ends |= self.run_all(body, tested.ok).either
            rest = tested.bad if clause.type == "elif_clause" else frozenset()
        return After.same(ends | rest)

    def _run_while(self, node: Node, where: Where, redirects: Sequence[Node]) -> After:
        self._commands.run_redirects(redirects, where)
        condition = [child for child in node.children if child.type != "do_group"]
        until = any(child.type == "until" for child in node.children)
        tested = self.run_all(condition, where)
        body = self.run_all(node.all("body"), tested.bad if until else tested.ok)
        return self._looped(where, tested.either | body.either)

    def _run_for(self, node: Node, where: Where, redirects: Sequence[Node]) -> After:
        self._commands.run_redirects(redirects, where)
        name = node.child("variable")
        if name is not None:
            text = self._source[name.start : name.end].decode("utf-8", "surrogateescape")
            self._commands.assign(text, None, where, exported=False)
        self._commands.name_values(node.all("value"), where)
        return self._looped(where, self.run_all(node.all("body"), where).either)

    def _run_c_style_for(self, node: Node, where: Where, redirects: Sequence[Node]) -> After:
        self._commands.run_redirects(redirects, where)
        body = node.all("body")
        expressions = [child for child in node.named_children() if child not in body and child.type != "comment"]
        self._commands.calculate(expressions, where)
        return self._looped(where, self.run_all(body, where).either)

    def _looped(self, before: Where, after: Where) -> After:
        """Where a loop leaves the shell; one that moves it may move it on with every turn."""
        if not after <= before:
            self._commands.forget_directory("cd in a loop")
        return After.same(before | after)

    def _run_case(self, node: Node, where: Where, redirects: Sequence[Node]) -> After:
        self._commands.run_redirects(redirects, where)
        self._commands.name_values(node.all("value"), where)
        ends = where
        for item in node.children:
            if item.type == "case_item":
                patterns = item.all("value")
                self._commands.name_values(patterns, where)
                ends |= self.run_all([child for child in item.children if child not in patterns], where).either
        return After.same(ends)


class _Function:
    """A function: its body, judged where it is defined and again wherever it is called."""

    def __init__(self, reading: Reading, body: Node, redirects: Sequence[Node]) -> None:
        self._reading = reading
        self._body = body
        self._redirects = redirects
        self._running = False

    def __call__(self, where: Where) -> After:
        """Judge one call; a function that calls itself adds nothing by that."""
        if self._running:
            return After.same(where)
        self._running = True
        try:
            return self._reading.run(self._body, where, self._redirects)
        finally:
            self._running = False


def _split(nodes: Sequence[Node], keyword: str) -> tuple[list[Node], list[Node]]:
    """The nodes before and after a keyword."""
    for index, node in enumerate(nodes):
        if node.type == keyword:
            return list(nodes[:index]), list(nodes[index + 1 :])
    return list(nodes), []
