"""Which judge a program's name leads to."""

from engine.tools.shell.programs.builtins import BUILTINS
from engine.tools.shell.programs.desk import Judge
from engine.tools.shell.programs.editors import EDITORS
from engine.tools.shell.programs.find import judge_fd, judge_find
from engine.tools.shell.programs.git import judge_git
from engine.tools.shell.programs.interpreters import INTERPRETERS
from engine.tools.shell.programs.readers import READERS
from engine.tools.shell.programs.shells import SHELLS
from engine.tools.shell.programs.unknown import judge_unknown
from engine.tools.shell.programs.wrappers import RUNNERS, WRAPPERS, judge_runner
from engine.tools.shell.programs.writers import WRITERS

SYSTEM_DIRECTORIES = frozenset({"/bin", "/usr/bin", "/usr/local/bin"})
"""Where a program is what its name says; anywhere else it may be anything."""

JUDGES: dict[str, Judge] = {
    **READERS,
    **WRITERS,
    **EDITORS,
    **INTERPRETERS,
    **BUILTINS,
    **WRAPPERS,
    **SHELLS,
    **dict.fromkeys(RUNNERS, judge_runner),
    "find": judge_find,
    "fd": judge_fd,
    "fdfind": judge_fd,
    "git": judge_git,
}


def find_judge(name: str) -> Judge:
    """The judge of a program; the one for unknown programs when nobody knows it."""
    return JUDGES.get(name, judge_unknown)


def known_name(path: str) -> str | None:
    """The name a program is known by: a bare name, or one in a system directory. None for any other path."""
    directory, slash, name = path.rpartition("/")
    return name if not slash or directory in SYSTEM_DIRECTORIES else None
