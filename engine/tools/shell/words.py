"""Words as the shell hands them to a program, as far as that can be known from the text.

A word's parse tree becomes a row of atoms: plain characters, which still mean something (`{`, `*`, `~`), quoted text,
which means itself, and holes, which only the running shell can fill. Braces and the tilde are expanded; a glob stays a
pattern; a hole makes the word unsure.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from engine.tools.shell.ansi import decode_ansi
from engine.tools.shell.braces import Atom, Kind, expand_braces
from engine.tools.shell.nodes import Node
from engine.tools.shell.places import GLOB_CHARACTERS

ACTIVE = frozenset("\\{}~*?[]$")
"""Characters that keep a bare word from meaning exactly its own text."""

ESCAPABLE_IN_QUOTES = frozenset('$`"\\\n')

BARE = frozenset({"word", "number", "extglob_pattern", "variable_name", "test_operator"})
COMPOSED = frozenset({"concatenation", "brace_expression", "command_name", "translated_string"})

PIPE_PATH = "/dev/fd/63"
"""What a process substitution becomes; the number differs, the kind of place does not."""


UNEVALUATED = {
    "process_substitution": Atom(PIPE_PATH, Kind.PIPE),
    "arithmetic_expansion": Atom("", Kind.HOLE),
}


@dataclass(frozen=True, slots=True)
class Word:
    """One word, or a stand-in for the words it may become.

    `text` is what the program sees when `sure` (a glob counts as sure and keeps its pattern), else its known parts.
    `many` says that it may become any number of words, `lead` is what it begins with for certain. A `silent` word is
    not named as a path: it is a pipe, or stands for files already named by another word.
    """

    raw: str
    text: str
    sure: bool = True
    many: bool = False
    glob: bool = False
    lead: str = ""
    silent: bool = False

    @property
    def literal(self) -> bool:
        """Whether the program sees exactly `text`."""
        return self.sure and not self.glob

    @property
    def may_be_option(self) -> bool:
        """Whether a program could read it as an option."""
        if self.literal:
            return self.text.startswith("-") and self.text != "-"
        return not self.lead or self.lead.startswith("-")


def literal_word(text: str) -> Word:
    """A word that is exactly this text."""
    return Word(text, text, lead=text)


def hole_word(raw: str, *, many: bool = True) -> Word:
    """A word nothing is known about."""
    return Word(raw, "", sure=False, many=many)


@dataclass(frozen=True, slots=True)
class Speller:
    """Turns word nodes of one source text into words; `home` is what `~` and `$HOME` mean, if known."""

    source: bytes
    home: str | None

    def raw(self, node: Node) -> str:
        """The text of a node as it was written."""
        return self.source[node.start : node.end].decode("utf-8", "surrogateescape")

    def words(self, node: Node) -> list[Word]:
        """The words a node becomes: one, several through braces, none where an empty expansion vanishes."""
        raw = self.raw(node)
        if node.type in {"word", "number"} and ACTIVE.isdisjoint(raw):
            return [Word(raw, raw, lead=raw)]
        rows = expand_braces(list(self._atoms(node)))
        if rows is None:
            return [hole_word(raw)]
        return [self._word(raw, row) for row in rows if row]

    def _word(self, raw: str, row: list[Atom]) -> Word:
        atoms = self._expand_tilde(row)
        holes = [atom for atom in atoms if atom.kind in {Kind.HOLE, Kind.HOLES}]
        glob = any(_is_glob(atom) for atom in atoms)
        return Word(
            raw=raw,
            text="".join(atom.text for atom in atoms),
            sure=not holes,
            many=glob or any(atom.kind is Kind.HOLES for atom in holes),
            glob=glob,
            lead=_lead(atoms),
            silent=any(atom.kind is Kind.PIPE for atom in atoms),
        )

    def _expand_tilde(self, row: list[Atom]) -> list[Atom]:
        start = _tilde_at(row)
        if start is None:
            return row
        end = start + 1
        while end < len(row) and row[end].text != "/":
            if row[end].kind is not Kind.PLAIN:
                return row
            end += 1
        user = "".join(atom.text for atom in row[start + 1 : end])
        known = self.home is not None and not user
        home = Atom(self.home or "", Kind.QUOTED) if known else Atom("", Kind.HOLE)
        return [*row[:start], home, *row[end:]]

    def _atoms(self, node: Node) -> Iterable[Atom]:
        raw = self.raw(node)
        if node.type in BARE or not node.named:
            return _plain_atoms(raw)
        if node.type == "string":
            return self._string_atoms(node)
        if node.type in {"raw_string", "ansi_c_string"}:
            return [Atom(raw[1:-1], Kind.QUOTED) if node.type == "raw_string" else decode_ansi(raw[2:-1])]
        if node.type in COMPOSED:
            return [atom for child in node.children for atom in self._atoms(child)]
        if node.type in {"simple_expansion", "expansion"}:
            return [self._variable_atom(node, quoted=False)]
        return [UNEVALUATED.get(node.type, Atom("", Kind.HOLES))]

    def _string_atoms(self, node: Node) -> Iterable[Atom]:
        yield Atom("", Kind.QUOTED)
        inner = node.children[1:-1]
        at = node.start + 1
        for child in inner:
            yield self._quoted_text(at, child.start)  # white space the grammar leaves between children
            if child.type in {"simple_expansion", "expansion"}:
                yield self._variable_atom(child, quoted=True)
            elif child.type == "string_content" or not child.named:
                yield self._quoted_text(child.start, child.end)
            else:
                yield Atom("", Kind.HOLE)
            at = child.end
        yield self._quoted_text(at, node.end - 1)

    def _quoted_text(self, start: int, end: int) -> Atom:
        text = self.source[start:end].decode("utf-8", "surrogateescape")
        if "\\" not in text:
            return Atom(text, Kind.QUOTED)
        out: list[str] = []
        at = 0
        while at < len(text):
            if text[at] == "\\" and at + 1 < len(text) and text[at + 1] in ESCAPABLE_IN_QUOTES:
                out.append(text[at + 1] if text[at + 1] != "\n" else "")
                at += 2
            else:
                out.append(text[at])
                at += 1
        return Atom("".join(out), Kind.QUOTED)

    def _variable_atom(self, node: Node, *, quoted: bool) -> Atom:
        raw = self.raw(node)
        if raw in {"$HOME", "${HOME}"} and self.home and (quoted or _splits_to_itself(self.home)):
            return Atom(self.home, Kind.QUOTED)
        if quoted and "@" not in raw:
            return Atom("", Kind.HOLE)
        return Atom("", Kind.HOLE if raw in {"$?", "$#", "$$"} else Kind.HOLES)


def _plain_atoms(text: str) -> Iterable[Atom]:
    at = 0
    while at < len(text):
        if text[at] != "\\":
            yield Atom(text[at], Kind.PLAIN)
            at += 1
            continue
        if text[at + 1 : at + 2] != "\n":  # a continued line leaves nothing behind
            yield Atom(text[at + 1 : at + 2], Kind.QUOTED)
        at += 2


def _tilde_at(row: list[Atom]) -> int | None:
    """Where an expandable tilde stands: first, or first after the `=` of something like an assignment."""
    if _is_plain(row[0], "~"):
        return 0
    for index, atom in enumerate(row):
        if atom.kind is not Kind.PLAIN:
            return None
        if atom.text == "=":
            name = "".join(before.text for before in row[:index])
            follows = index + 1 < len(row) and _is_plain(row[index + 1], "~")
            return index + 1 if follows and name.isidentifier() else None
    return None


def _is_plain(atom: Atom, character: str) -> bool:
    return atom.kind is Kind.PLAIN and atom.text == character


def _is_glob(atom: Atom) -> bool:
    return atom.kind is Kind.PLAIN and atom.text in GLOB_CHARACTERS


def _splits_to_itself(value: str) -> bool:
    return not any(character.isspace() or character in GLOB_CHARACTERS for character in value)


def _lead(atoms: list[Atom]) -> str:
    lead: list[str] = []
    for atom in atoms:
        if atom.kind in {Kind.HOLE, Kind.HOLES} or _is_glob(atom):
            break
        lead.append(atom.text)
    return "".join(lead)
