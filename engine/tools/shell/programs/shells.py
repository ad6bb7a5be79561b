"""Shells run with a script in their arguments: the script is what counts."""

from engine.tools.shell.programs.desk import Call, Desk, Judge, name_all
from engine.tools.shell.programs.options import Grammar, Option, Options, parse_options
from engine.tools.shell.programs.unknown import name_likely_paths
from engine.tools.shell.words import Word, literal_word

BOURNE = frozenset({"sh", "bash", "dash", "ash", "rbash"})
KINDRED = frozenset({"zsh", "ksh", "mksh", "fish", "csh", "tcsh"})
"""Shells that read much the same text, not quite as bash does."""

GRAMMAR = Grammar(values="oO", longs=("rcfile", "init-file"), in_order=True)
HARMLESS_LETTERS = "ceuxlvfoO"
HARMLESS_LONGS = ("login", "norc", "noprofile", "posix")

COMMON_CHARACTERS = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ./_-,:@%|&;'\"\n"
)  # fmt: skip
"""A text of these alone means the same to every kindred shell; `=`, `~`, globs and brackets do not."""

HARMLESS_SHELL_OPTIONS = frozenset({"pipefail", "errexit", "nounset", "xtrace", "noglob", "noclobber"})


def judge_shell(call: Call, desk: Desk) -> None:
    """Judge `sh -c TEXT`, a shell reading a here-document, or a shell running a file."""
    options = parse_options(_plus_as_minus(call), GRAMMAR)
    if options.unsure[:1] and options.unsure[0] in options.operands[:1] and not options.has("-c"):
        desk.findings.unknown(f"{call.name} may run anything")
    odd = options.beyond(HARMLESS_LETTERS + "s", HARMLESS_LONGS)
    if odd:
        desk.findings.unknown(f"{call.name} {odd.name} may do more than run a command")
    if any(not _is_harmless(option) for option in options.find("-o", "-O")):
        desk.findings.unknown(f"{call.name} runs with an unusual option")
    if options.has("-c"):
        _judge_text(call, desk, options)
    elif options.operands and not options.has("-s"):
        desk.findings.unknown(f"{call.name} runs a script from a file")
        name_all(desk, call, options.operands[:1], writes=True)
        name_likely_paths(Call(call.name, tuple(options.operands[1:]), call.where), desk)
    elif call.stdin:
        _judge_stdin(call, desk)
    else:
        desk.findings.unknown(f"{call.name} runs what it reads")


def _plus_as_minus(call: Call) -> list[Word]:
    return [literal_word("-" + word.text[1:]) if word.literal and word.text[:1] == "+" else word for word in call.args]


def _is_harmless(option: Option) -> bool:
    value = option.value
    return option.name == "-o" and value is not None and value.literal and value.text in HARMLESS_SHELL_OPTIONS


def _judge_text(call: Call, desk: Desk, options: Options) -> None:
    if not options.operands:
        return
    script = options.operands[0]
    if not script.literal:
        desk.findings.unknown(f"{call.name} -c runs a text that is known only when it runs")
        desk.findings.name_unknowable(script.raw)
    _read(call, desk, script.text)
    name_likely_paths(Call(call.name, tuple(options.operands[1:]), call.where), desk)


def _judge_stdin(call: Call, desk: Desk) -> None:
    document = call.stdin
    if document is None:
        return
    if document.expands and ("$" in document.body or "`" in document.body or "\\" in document.body):
        desk.findings.unknown(f"{call.name} reads a text that is known only when it runs")
    _read(call, desk, document.body)


def _read(call: Call, desk: Desk, text: str) -> None:
    if call.name in KINDRED and not COMMON_CHARACTERS.issuperset(text):
        desk.findings.unknown(f"{call.name} may read this text differently")
    desk.run_text(text, call.where)


SHELLS: dict[str, Judge] = dict.fromkeys(BOURNE | KINDRED, judge_shell)
"""Shells."""
