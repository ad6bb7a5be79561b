"""perl and ruby: they may do anything, and with `-i` they certainly edit files in place."""

from collections import deque
from dataclasses import dataclass, field

from engine.tools.shell.programs.desk import Call, Desk, Judge, label, name_all
from engine.tools.shell.programs.unknown import name_likely_paths, name_paths_in_code
from engine.tools.shell.words import Word, literal_word

OCTAL = "01234567"
TAKE_NEXT = frozenset("eEI")
"""Switches whose value is the rest of the word, or the next word where nothing is left."""

TAKE_DIGITS = {"0": "xX0123456789abcdefABCDEF", "l": OCTAL, "W": OCTAL, "T": OCTAL}
"""Switches that may be followed by digits, after which the cluster goes on: `-0777pi`."""

TAKE_REST = {
    "perl": frozenset("MmxdDFVC"),
    "ruby": frozenset("rxFCXK"),
}


@dataclass(slots=True)
class Switches:
    """What an interpreter's command line holds; ``code`` is every switch and what belongs to it."""

    letters: set[str] = field(default_factory=set)
    code: list[Word] = field(default_factory=list)
    operands: list[Word] = field(default_factory=list)


def read_switches(call: Call) -> Switches:
    """Take a command line apart the way these interpreters do, whose switches are no getopt's."""
    switches = Switches()
    rest = deque(call.args)
    while rest and rest[0].may_be_option and rest[0].literal:
        text = rest.popleft().text
        if text == "--":
            break
        switches.code.append(literal_word(text))
        if not text.startswith("--") and _read_cluster(call.name, text, switches.letters) and rest:
            switches.code.append(rest.popleft())
    switches.operands.extend(rest)
    return switches


def _read_cluster(name: str, text: str, letters: set[str]) -> bool:
    """Collect the letters of one word; whether its last switch takes the next word."""
    at = 1
    while at < len(text):
        letter = text[at]
        letters.add(letter)
        at += 1
        if letter in TAKE_NEXT:
            return at == len(text)
        if letter == "i" or letter in TAKE_REST[name]:
            return False
        while at < len(text) and text[at] in TAKE_DIGITS.get(letter, ""):
            at += 1
    return False


def judge_interpreter(call: Call, desk: Desk) -> None:
    """Judge one call of perl or ruby."""
    switches = read_switches(call)
    code = not switches.letters.isdisjoint(TAKE_NEXT - {"I"})
    files = switches.operands if code else switches.operands[1:]
    if not code:
        name_all(desk, call, switches.operands[:1], writes=True)
    for text in [*(word.text for word in switches.code), call.stdin.body if call.stdin else ""]:
        name_paths_in_code(text, call, desk)
    if "i" in switches.letters:
        shown = label(files[0]) if files else "its files"
        desk.findings.destructive(f"{call.name} -i edits {shown} in place", reaches_further=True)
        name_all(desk, call, files, writes=True)
    else:
        desk.findings.unknown(f"{call.name} is not known to be read-only")
        name_likely_paths(Call(call.name, tuple(files), call.where), desk)


INTERPRETERS: dict[str, Judge] = {"perl": judge_interpreter, "ruby": judge_interpreter}
"""Interpreters with an option that edits files."""
