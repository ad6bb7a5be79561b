"""Programs that certainly change files, and those that may and whose words are paths."""

from dataclasses import dataclass

from engine.tools.shell.programs.desk import Call, Desk, Judge, label, name_all, write_to
from engine.tools.shell.programs.options import NO_VALUES, Grammar, parse_options
from engine.tools.shell.programs.unknown import find_path, is_plainly_path
from engine.tools.shell.words import Word

BACKUPS = ("-b", "--backup", "-S", "--suffix")
"""What makes a program keep the file that it replaces, beside it."""

ASKS_HELP = frozenset({"--help", "--version"})


@dataclass(frozen=True, slots=True)
class Writer:
    """A program that changes files whatever it is told; `verb` is what it does to them.

    With one of the options in `further` it changes others than those named: it keeps a backup, or makes directories.
    """

    verb: str
    grammar: Grammar = NO_VALUES
    further: tuple[str, ...] = ()

    def __call__(self, call: Call, desk: Desk) -> None:
        """Judge one call."""
        if _asks_help(call):
            return
        options = parse_options(call.args, self.grammar)
        files = [*options.operands, *options.values("-t", "--target-directory", "-r", "--reference")]
        shown = label(options.operands[0]) if options.operands else "files"
        name_all(desk, call, files, writes=True)
        reaches_further = options.has(*self.further)
        desk.findings.destructive(f"{call.name} {self.verb} {shown}", reaches_further=reaches_further)


@dataclass(frozen=True, slots=True)
class Maker:
    """A program that may change files and whose operands, after the first `skip`, are paths."""

    skip: int = 0
    grammar: Grammar = NO_VALUES

    def __call__(self, call: Call, desk: Desk) -> None:
        """Judge one call."""
        options = parse_options(call.args, self.grammar)
        desk.findings.unknown(f"{call.name} may change files")
        values = [option.value for option in options.given if option.value and is_plainly_path(option.value.text)]
        name_all(desk, call, [*options.operands[self.skip :], *values], writes=True)


def _asks_help(call: Call) -> bool:
    return len(call.args) == 1 and call.args[0].literal and call.args[0].text in ASKS_HELP


def judge_dd(call: Call, desk: Desk) -> None:
    """`dd` writes raw blocks to whatever `of=` names."""
    if _asks_help(call):
        return
    shown = "data"
    for word in call.args:
        key, equals, value = word.text.partition("=")
        if equals and key in {"if", "of"}:
            file = Word(word.raw, value, word.sure, lead=value, silent=word.silent)
            desk.findings.name_word(file, call.where, writes=True)
            shown = label(file) if key == "of" else shown
        elif not word.sure:
            desk.findings.name_word(word, call.where, writes=True)
    desk.findings.destructive(f"dd writes {shown}")


def judge_tee(call: Call, desk: Desk) -> None:
    """`tee` writes its input to every operand."""
    options = parse_options(call.args, Grammar())
    for word in options.operands:
        write_to(desk, call, word, f"tee writes {label(word)}")


DOWNLOAD_PLACES = ("output", "output-document", "output-dir", "directory-prefix")


def judge_download(call: Call, desk: Desk) -> None:
    """`curl` and `wget` talk to the network and may write what they get."""
    options = parse_options(
        call.args,
        Grammar(values="oTKDcHAeFXuUbdxmw" if call.name == "curl" else "oOaPiUeQ", longs=DOWNLOAD_PLACES),
    )
    desk.findings.unknown(f"{call.name} talks to the network and may write files")
    files = options.values("-o", "-O", "-P", *(f"--{name}" for name in DOWNLOAD_PLACES))
    name_all(desk, call, files, writes=True)
    local = [path for word in options.operands if word.text.startswith("file:") and (path := find_path(word))]
    name_all(desk, call, local, writes=False)


_OWNERS = Maker(skip=1, grammar=Grammar(longs=("reference", "from")))

WRITERS: dict[str, Judge] = {
    "rm": Writer("deletes"),
    "rmdir": Writer("deletes"),
    "unlink": Writer("deletes"),
    "shred": Writer("overwrites", Grammar(values="ns", longs=("iterations", "size", "random-source"))),
    "truncate": Writer("cuts", Grammar(values="sr", longs=("size", "reference"))),
    "cp": Writer("copies", Grammar(values="tS", longs=("target-directory", "suffix")), BACKUPS),
    "mv": Writer("moves", Grammar(values="tS", longs=("target-directory", "suffix")), BACKUPS),
    "install": Writer(
        "installs",
        Grammar(values="tSmog", longs=("target-directory", "suffix", "mode", "owner", "group")),
        (*BACKUPS, "-d", "-D", "--directory"),
    ),
    "dd": judge_dd,
    "tee": judge_tee,
    "curl": judge_download,
    "wget": judge_download,
    "chmod": Maker(skip=1, grammar=Grammar(longs=("reference",))),
    "chown": _OWNERS,
    "chgrp": _OWNERS,
    **dict.fromkeys(("touch",), Maker(grammar=Grammar(values="drt", longs=("date", "reference", "time")))),
    **dict.fromkeys(("mkdir", "mkfifo"), Maker(grammar=Grammar(values="m", longs=("mode",)))),
    **dict.fromkeys(("ln", "link"), Maker(grammar=Grammar(values="tS", longs=("target-directory", "suffix")))),
    **dict.fromkeys(
        ("gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz", "zip", "rename", "ex", "ed", "vi", "vim", "nano"), Maker()
    ),
    **dict.fromkeys(("source", "."), Maker()),
}
"""Programs that change files."""
