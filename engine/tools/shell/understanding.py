"""The entry: one command, understood."""

from collections.abc import Callable

from engine.model import Understanding
from engine.tools.shell.commands import Case
from engine.tools.shell.places import Workspace, join
from engine.tools.shell.reading import read_script
from engine.tools.shell.verdict import Findings


def understand(
    command: str,
    *,
    cwd: str,
    root: str,
    home: str | None = None,
    resolve: Callable[[str], str] | None = None,
) -> Understanding:
    """Say what `sh -c COMMAND` or `bash -c COMMAND` would do, without running anything.

    `cwd` is the directory it would run in and `root` the workspace. `home` is what `~` and `$HOME` mean there; without
    it paths below them cannot be known. `resolve` finds the real path behind links, as `os.path.realpath` does, and is
    the only thing that may look at the disk; without it paths are compared as text.
    """
    findings = Findings(Workspace(root, home, resolve))
    case = Case(findings)
    try:
        read_script(command, case, frozenset({join("/", cwd)}))
    except RecursionError:
        findings.unknown("the command is too nested to read")
    return findings.answer()
