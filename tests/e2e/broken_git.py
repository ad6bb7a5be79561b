"""A git that stands first on the search path: it writes down how it was called, and fails when it is told to."""

import os
import shutil
from pathlib import Path

_SCRIPT = """\
#!/bin/sh
printf '%s\\n' "$*" >> '{calls}'
if test -e '{dying}' && printf '%s' "$*" | grep -q -e "$(tail -n 1 '{dying}')"; then
    head -c "$(head -n 1 '{dying}')" | '{real}' "$@"
    kill -9 $$
fi
if test -e '{broken}' && printf '%s' "$*" | grep -q -e "$(cat '{broken}')"; then
    echo 'fatal: sha1 file write error: No space left on device' >&2
    exit 128
fi
if test -e '{lying}'; then
    '{real}' "$@"
    exit 1
fi
exec '{real}' "$@"
"""


class WatchedGit:
    """``path`` is a search path with this git before the real one."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self._calls = directory / "calls"
        self._broken = directory / "broken"
        self._dying = directory / "dying"
        self._lying = directory / "lying"
        real = shutil.which("git")
        assert real is not None
        script = directory / "git"
        files = {"calls": self._calls, "broken": self._broken, "dying": self._dying, "lying": self._lying}
        script.write_text(_SCRIPT.format(**files, real=real))
        script.chmod(0o755)
        self.path = f"{directory}:{os.environ['PATH']}"

    def calls(self) -> list[str]:
        """The arguments of every call so far."""
        return self._calls.read_text().splitlines() if self._calls.exists() else []

    def fail(self, pattern: str = ".") -> None:
        """Fail from now on whenever the arguments match a basic regular expression."""
        self._broken.write_text(pattern)

    def die_after(self, size_bytes: int, pattern: str) -> None:
        """Take in so much of its input and die then, whenever the arguments match."""
        self._dying.write_text(f"{size_bytes}\n{pattern}\n")

    def lie(self) -> None:
        """Do everything from now on and say that it failed."""
        self._lying.touch()

    def work(self) -> None:
        """Work again."""
        self._lying.unlink(missing_ok=True)
        self._broken.unlink(missing_ok=True)
        self._dying.unlink(missing_ok=True)


def path_without_git(directory: Path) -> str:
    """A search path with every program of the present one but git."""
    directory.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for program in os.listdir(place) if os.path.isdir(place) else []:
            link = directory / program
            if not program.startswith("git") and not os.path.lexists(link):
                link.symlink_to(os.path.join(place, program))
    return str(directory)
