"""Redirects: what they open, and whether that changes a file."""

from dataclasses import dataclass

from engine.tools.shell.heredocs import heredoc_number
from engine.tools.shell.nodes import Node
from engine.tools.shell.places import SINKS, STREAMS, Where
from engine.tools.shell.verdict import Findings, shorten
from engine.tools.shell.words import Speller, Word

WRITING = frozenset({">", ">>", ">|", "&>", "&>>"})
DUPLICATING = frozenset({">&", "<&"})
CLOSING = frozenset({">&-", "<&-"})
OUTPUTS = frozenset({"1", "2"})
STANDARD_INPUT = frozenset({"", "0"})
NETWORK = ("/dev/tcp/", "/dev/udp/")


@dataclass(frozen=True, slots=True)
class Redirect:
    """One redirect. `more` are the words behind its target, which are the command's own arguments."""

    descriptor: str
    operator: str
    targets: tuple[Word, ...]
    start: int
    nodes: tuple[Node, ...]
    more: tuple[Node, ...]

    @property
    def is_input(self) -> bool:
        """Whether this gives the command another standard input."""
        return self.descriptor == "0" or (not self.descriptor and self.operator.startswith("<"))

    @property
    def heredoc(self) -> int | None:
        """Which here-document this reads, if one."""
        return heredoc_number(self.targets[0].text) if self.operator == "<" and len(self.targets) == 1 else None


def read_redirect(node: Node, speller: Speller) -> Redirect:
    """The redirect a node stands for."""
    descriptor = node.child("descriptor")
    operator = next((speller.raw(child) for child in node.children if not child.named), "")
    destinations = [child for child in node.children if child.named and child.type != "file_descriptor"]
    return Redirect(
        descriptor=speller.raw(descriptor) if descriptor else "",
        operator=operator,
        targets=tuple(word for child in destinations[:1] for word in speller.words(child)),
        start=node.start,
        nodes=tuple(destinations[:1]),
        more=tuple(destinations[1:]),
    )


def judge_redirect(redirect: Redirect, findings: Findings, where: Where) -> None:
    """Report what one redirect does."""
    operator = redirect.operator
    if operator in CLOSING or operator == "<<<" or redirect.heredoc is not None:
        return
    if len(redirect.targets) != 1:
        _judge_uncertain(redirect, findings, where)
        return
    target = redirect.targets[0]
    if operator in DUPLICATING and _is_descriptor(target):
        if target.text.rstrip("-") not in OUTPUTS:
            findings.moves_descriptor = True
    elif operator == "<&" or (operator == ">&" and not target.sure):
        findings.unknown("a redirect's target is known only when it runs")
        findings.name_word(target, where, writes=True)
    elif operator in WRITING or operator == ">&":
        _judge_output(target, findings, where)
    else:
        _judge_input(redirect, target, findings, where)


def _judge_uncertain(redirect: Redirect, findings: Findings, where: Where) -> None:
    """A target that braces make several words of: the shell refuses it, or not, depending on which it is."""
    findings.unknown("a redirect's target is known only when it runs")
    for word in redirect.targets:
        findings.name_word(word, where, writes=True)
    if redirect.operator in WRITING and redirect.targets:
        findings.destructive(f"writes to {shorten(redirect.targets[0].raw)}")


def _judge_input(redirect: Redirect, target: Word, findings: Findings, where: Where) -> None:
    findings.name_word(target, where, writes=False)
    if redirect.operator != "<" or target.text.startswith(NETWORK):
        findings.unknown("opens a network connection" if redirect.operator == "<" else "a redirect is not known here")
    if redirect.descriptor not in STANDARD_INPUT:
        findings.moves_descriptor = True


def _is_descriptor(target: Word) -> bool:
    digits = target.text.removesuffix("-")
    return target.literal and (not digits or (digits.isascii() and digits.isdigit()))


def _judge_output(target: Word, findings: Findings, where: Where) -> None:
    findings.name_word(target, where, writes=True)
    if target.silent or (target.literal and target.text in SINKS):
        return
    if target.literal and target.text in STREAMS:
        findings.reopens_descriptor = True
    elif target.text.startswith(NETWORK):
        findings.unknown("opens a network connection")
    else:
        findings.destructive(f"writes to {shorten(target.text if target.sure else target.raw)}")
