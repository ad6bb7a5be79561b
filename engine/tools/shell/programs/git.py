"""git: which of its commands only read, which change the working tree, and where it runs.

A repository's own configuration may make even `git status` run a program. What is judged here is the command, not the
repository; whatever the *command* adds to that (`-c`, `--ext-diff`, an output file, a pager) is not read-only.
"""

from collections.abc import Callable

from engine.tools.shell.places import Where
from engine.tools.shell.programs.desk import Call, Desk, label, name_all, write_to
from engine.tools.shell.programs.options import Grammar, Options, parse_options
from engine.tools.shell.programs.unknown import name_likely_paths
from engine.tools.shell.words import Word

TREE_CHANGERS = frozenset({"reset", "clean", "checkout", "restore", "switch", "stash", "rebase", "merge", "pull"})

GLOBAL = Grammar(
    values="Cc",
    longs=("git-dir", "work-tree", "namespace", "exec-path", "super-prefix", "config-env", "attr-source"),
    in_order=True,
)

HARMLESS_GLOBALS = (
    "no-pager", "paginate", "bare", "no-replace-objects", "literal-pathspecs", "glob-pathspecs", "noglob-pathspecs",
    "icase-pathspecs", "no-optional-locks", "no-lazy-fetch", "no-advice", "version", "help", "html-path", "man-path",
    "info-path", "git-dir", "work-tree", "namespace",
)  # fmt: skip

HARMLESS_SETTINGS = (
    "color.",
    "column.",
    "advice.",
    "user.",
    "core.quotepath",
    "core.abbrev",
    "diff.rename",
    "log.date",
)
"""Settings that only change how output looks."""

PAGER_VALUES = frozenset({"cat", "", "false", "0"})

READERS = frozenset(
    {
        "status", "log", "show", "diff", "shortlog", "ls-files", "ls-tree", "rev-parse", "rev-list", "blame",
        "annotate", "describe", "name-rev", "merge-base", "diff-tree", "diff-index", "diff-files", "show-ref",
        "for-each-ref", "show-branch", "cherry", "count-objects", "check-ignore", "check-attr", "check-mailmap",
        "check-ref-format", "version", "whatchanged", "range-diff", "fsck", "cat-file", "grep", "verify-pack", "var",
    }
)  # fmt: skip

RUNNERS = ("--ext-diff", "--textconv", "--filters", "--open-files-in-pager", "--lost-found", "--show-signature")
"""Options of reading commands that run a program or write."""

SIGNATURES = ("%G", "%(signature")
"""Parts of a format that have a signature checked, by the program a repository names."""

LIST_OPTIONS = ("--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at")
SHOW_OPTIONS = (
    "all", "remotes", "verbose", "list", "contains", "no-contains", "merged", "no-merged", "points-at", "sort",
    "format", "column", "no-column", "color", "no-color", "abbrev", "no-abbrev", "show-current",
    "ignore-case", "omit-empty",
)  # fmt: skip


def judge_git(call: Call, desk: Desk) -> None:
    """Judge one git command line."""
    options = parse_options(call.args, GLOBAL)
    where = _judge_globals(call, desk, options)
    if not options.operands:
        return
    command, *rest = options.operands
    if not command.literal:
        desk.findings.unknown("git's command is known only when it runs")
        return
    if any(sign in word.text for word in rest for sign in SIGNATURES):
        desk.findings.unknown(f"git {label(command)} may run a program to check a signature")
    inner = Call(command.text, tuple(rest), where)
    if len(rest) == 1 and rest[0].literal and rest[0].text == "--help":
        return
    if judge := LISTERS.get(command.text):
        judge(inner, desk)
    elif command.text in READERS:
        _judge_reader(inner, desk)
    elif command.text in TREE_CHANGERS:
        _judge_changer(inner, desk)
    else:
        desk.findings.unknown(f"git {label(command)} is not known to be read-only")
        name_likely_paths(Call("git", tuple(rest), where), desk)


def _judge_globals(call: Call, desk: Desk, options: Options) -> Where:
    """Judge what stands before git's command; returns where that command runs."""
    places = options.values("-C")
    name_all(desk, call, [*places, *options.values("--git-dir", "--work-tree")], writes=True)
    for setting in options.values("-c"):
        if not _is_harmless(setting):
            desk.findings.unknown(f"git -c {label(setting)} may run a program")
    for option in options.given:
        if option.name.startswith("--") and option.name[2:] not in HARMLESS_GLOBALS:
            desk.findings.unknown(f"git {option.name} may run a program")
    if any(word.may_be_option for word in options.unsure):
        desk.findings.unknown("git may get an option that is known only when it runs")
    where = call.where
    for place in places:
        if place.sure and place.text:
            where = desk.findings.workspace.enter(where, place.text)
    return where


def _is_harmless(setting: Word) -> bool:
    key, _equals, value = setting.text.partition("=")
    key = key.lower()
    if not setting.literal:
        return False
    if key == "core.pager" or key.startswith("pager."):
        return value in PAGER_VALUES
    return key.startswith(HARMLESS_SETTINGS)


def _judge_reader(call: Call, desk: Desk) -> None:
    # No option is taken to have a separate value: which do differs between commands, and a value that swallowed an
    # option would hide it.
    options = parse_options(call.args, Grammar(longs=("output",)))
    runs = [*RUNNERS, "-O"] if call.name == "grep" else RUNNERS
    for option in options.find(*runs):
        desk.findings.unknown(f"git {call.name} {option.name} may run a program")
    if options.unsure:
        desk.findings.unknown(f"git {call.name} may get an option that is known only when it runs")
    for option in options.find("--output"):
        if option.value is None:
            desk.findings.unknown(f"git {call.name} {option.name} may write a file")
        else:
            write_to(desk, call, option.value, f"git {call.name} --output writes {label(option.value)}")
    name_likely_paths(Call("git", tuple(options.operands), call.where), desk)


def _judge_changer(call: Call, desk: Desk) -> None:
    subcommand = call.args[0].text if call.args and call.args[0].literal else ""
    if call.name == "stash" and subcommand in {"list", "show"}:
        _judge_reader(Call("stash", call.args[1:], call.where), desk)
        return
    if call.name == "clean" and _only_says(call):
        name_likely_paths(Call("git", call.args, call.where), desk)
        return
    how = f" {call.args[0].text}" if subcommand.startswith("-") else ""
    desk.findings.destructive(f"git {call.name}{how} changes the working tree", reaches_further=True)
    _name_pathspecs(call, desk)


def _only_says(call: Call) -> bool:
    options = parse_options(call.args, Grammar(values="e", longs=("exclude",)))
    says = options.has("-n", "--dry-run") and not options.unsure
    return says and options.beyond("ndxXqe", ("dry-run", "quiet", "exclude")) is None


def _name_pathspecs(call: Call, desk: Desk) -> None:
    """Name what follows `--`, and before it the words that look like paths; a branch may look like one."""
    texts = [word.text if word.literal else "" for word in call.args]
    dashes = texts.index("--") if "--" in texts else len(texts)
    name_likely_paths(Call("git", call.args[:dashes], call.where), desk)
    files = call.args[dashes + 1 :]
    if call.name in {"restore", "clean", "rm", "mv"}:
        files = (*[word for word in call.args[:dashes] if not word.may_be_option], *files)
    name_all(desk, call, files, writes=True)


def _judge_remover(call: Call, desk: Desk) -> None:
    options = parse_options(call.args, Grammar(longs=("pathspec-from-file",)))
    if options.has("--cached", "-n", "--dry-run"):
        desk.findings.unknown(f"git {call.name} changes the repository")
    else:
        desk.findings.destructive(f"git {call.name} changes the working tree", reaches_further=True)
    _name_pathspecs(call, desk)


def _judge_branch(call: Call, desk: Desk) -> None:
    options = parse_options(call.args, Grammar(longs=("sort", "format", "points-at", "contains", "no-contains")))
    listing = options.has(*LIST_OPTIONS)
    changing = options.beyond("arvqi", SHOW_OPTIONS)
    if options.unsure or changing or (options.operands and not listing):
        desk.findings.unknown(f"git {call.name} may change a {call.name}")


def _judge_tag(call: Call, desk: Desk) -> None:
    options = parse_options(call.args, Grammar(attached="n", longs=("sort", "format", "points-at", "contains")))
    listing = options.has("-l", *LIST_OPTIONS)
    changing = options.beyond("lni", SHOW_OPTIONS)
    if options.unsure or changing or (options.operands and not listing):
        desk.findings.unknown("git tag may change a tag")


def _judge_config(call: Call, desk: Desk) -> None:
    words = _words_only(call)
    rest = [word for word in words or [] if word not in CONFIG_SCOPES]
    asks = rest and (rest[0] in CONFIG_QUESTIONS or (len(rest) == 1 and "." in rest[0]))
    if not asks or any(word.startswith("-") and word not in CONFIG_OPTIONS for word in rest):
        desk.findings.unknown("git config may change the configuration")


CONFIG_QUESTIONS = frozenset({"--get", "--get-all", "--get-regexp", "--get-urlmatch", "--list", "-l", "get", "list"})
CONFIG_SCOPES = frozenset(
    {"--global", "--local", "--system", "--worktree", "--show-origin", "--show-scope", "--null", "-z"}
)
CONFIG_OPTIONS = CONFIG_SCOPES | {
    "--get", "--get-all", "--get-regexp", "--get-urlmatch", "--list", "-l", "--name-only", "--bool", "--int", "--path",
}  # fmt: skip


def _words_only(call: Call) -> list[str] | None:
    """The texts of a call whose words are all known."""
    return [word.text for word in call.args] if all(word.literal for word in call.args) else None


def _judge_remote(call: Call, desk: Desk) -> None:
    words = _words_only(call)
    if words is None or (words not in ([], ["-v"], ["--verbose"]) and words[0] != "get-url"):
        desk.findings.unknown("git remote may change a remote")


def _judge_reflog(call: Call, desk: Desk) -> None:
    words = _words_only(call)
    if words is None or (words and not words[0].startswith("-") and words[0] not in REFLOG_QUESTIONS):
        desk.findings.unknown("git reflog may change the reflog")
    else:
        _judge_reader(Call("reflog", call.args, call.where), desk)


REFLOG_QUESTIONS = frozenset({"show", "list", "exists", "HEAD"})


def _judge_symbolic_ref(call: Call, desk: Desk) -> None:
    options = parse_options(call.args, Grammar(values="m"))
    if options.unsure or options.beyond("q", ("quiet", "short")) or len(options.operands) != 1:
        desk.findings.unknown("git symbolic-ref may change a reference")


def _listing(*allowed: tuple[str, ...]) -> Callable[[Call, Desk], None]:
    """A command that reads only when it starts with one of these words."""

    def judge(call: Call, desk: Desk) -> None:
        words = _words_only(call)
        if words is None or not any(tuple(words[: len(start)]) == start for start in allowed):
            desk.findings.unknown(f"git {call.name} may change the repository")
            name_likely_paths(Call("git", call.args, call.where), desk)

    return judge


LISTERS: dict[str, Callable[[Call, Desk], None]] = {
    "branch": _judge_branch,
    "tag": _judge_tag,
    "config": _judge_config,
    "remote": _judge_remote,
    "reflog": _judge_reflog,
    "symbolic-ref": _judge_symbolic_ref,
    "worktree": _listing(("list",)),
    "notes": _listing(("list",), ("show",)),
    "submodule": _listing(("status",)),
    "sparse-checkout": _listing(("list",)),
    "rm": _judge_remover,
    "mv": _judge_remover,
}
"""Commands that read or change, by what follows them."""
