"""sed and awk: little languages whose programs stand in the command line."""

from itertools import pairwise

from engine.tools.shell.programs.desk import Call, Desk, Judge, label, name_all, write_to
from engine.tools.shell.programs.options import Grammar, Options, parse_options
from engine.tools.shell.programs.sed_script import read_sed_script
from engine.tools.shell.programs.unknown import name_likely_paths, name_paths_in_code
from engine.tools.shell.words import Word, literal_word

SED = Grammar(values="efl", attached="iI", longs=("expression", "file", "line-length"))
SED_LONGS = (
    "expression", "file", "line-length", "quiet", "silent", "regexp-extended", "null-data", "zero-terminated", "posix",
    "separate", "unbuffered", "debug", "sandbox", "binary", "follow-symlinks", "in-place",
)  # fmt: skip


def judge_sed(call: Call, desk: Desk) -> None:
    """`sed` edits a stream; `-i` edits its files, and its script may write others."""
    options = parse_options(call.args, SED)
    in_place = options.has("-i", "-I", "--in-place")
    scripts, files = _sed_parts(options, in_place=in_place)
    if options.unsure or options.beyond("nefEriIsuzlab", SED_LONGS):
        desk.findings.unknown("sed may get an option that is known only when it runs")
    if in_place:
        shown = label(files[0]) if files else "its files"
        # With a suffix it keeps what it replaces, in a file that nobody names.
        backup = bool(options.values("-i", "-I", "--in-place"))
        desk.findings.destructive(f"sed -i edits {shown} in place", reaches_further=backup)
    _judge_sed_script(call, desk, scripts)
    if options.has("-f", "--file"):
        name_all(desk, call, options.values("-f", "--file"), writes=False)
        desk.findings.unknown("sed reads its script from a file")
    name_all(desk, call, files, writes=in_place)


def _sed_parts(options: Options, *, in_place: bool) -> tuple[list[Word], list[Word]]:
    """The scripts and the files of a command line."""
    operands = list(options.operands)
    if in_place and operands and operands[0].literal and not operands[0].text:
        del operands[0]  # `sed -i ''`: elsewhere the suffix is a word of its own
    scripts = options.values("-e", "--expression")
    if scripts or options.has("-f", "--file"):
        return scripts, operands
    return operands[:1], operands[1:]


def _judge_sed_script(call: Call, desk: Desk, scripts: list[Word]) -> None:
    if not all(word.literal for word in scripts):
        desk.findings.unknown("sed's script is known only when it runs")
    script = read_sed_script("\n".join(word.text for word in scripts))
    if not script.understood:
        desk.findings.unknown("sed's script may write or run something")
    for path in script.reads:
        desk.findings.name(path, call.where)
    for path in script.writes:
        write_to(desk, call, literal_word(path), f"sed's script writes {path}")


AWK = Grammar(values="Fv", longs=("field-separator", "assign"), in_order=True)
AWK_SPECIAL = ("@", "system", "getline")
"""What an awk program needs, besides printing, to run something or to load code."""


def judge_awk(call: Call, desk: Desk) -> None:
    """`awk` prints what its program says, which may also write files and run programs."""
    if _edits_in_place(call):
        files = [word for word in call.args if not word.may_be_option][1:]
        desk.findings.destructive(f"{call.name} -i inplace edits files", reaches_further=True)
        name_likely_paths(Call(call.name, tuple(files), call.where), desk)
        return
    options = parse_options(call.args, AWK)
    program, *files = options.operands or [literal_word("")]
    if options.beyond("Fv", AWK.longs) or any(value.many for value in options.values("-F", "-v")):
        desk.findings.unknown(f"{call.name} has an option that is not known here")
        name_likely_paths(call, desk)
    elif not program.literal:
        desk.findings.unknown(f"{call.name}'s program is known only when it runs")
    elif not _only_prints(program.text):
        desk.findings.unknown(f"{call.name}'s program may write or run something")
        name_paths_in_code(program.text, call, desk)
    name_all(desk, call, [file for file in files if "=" not in file.text], writes=False)


def _only_prints(program: str) -> bool:
    """Whether nothing here writes or runs: `>` and `|` redirect only what a `print` before them prints."""
    _before, _print, printing = program.partition("print")
    redirects = ">" in printing or "|" in printing.replace("||", "")
    return not redirects and not any(special in program for special in AWK_SPECIAL)


def _edits_in_place(call: Call) -> bool:
    texts = [word.text for word in call.args]
    attached = not {"-iinplace", "--include=inplace"}.isdisjoint(texts)
    return attached or any(pair in {("-i", "inplace"), ("--include", "inplace")} for pair in pairwise(texts))


EDITORS: dict[str, Judge] = {
    "sed": judge_sed,
    "gsed": judge_sed,
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), judge_awk),
}
"""Languages whose command lines edit files."""
