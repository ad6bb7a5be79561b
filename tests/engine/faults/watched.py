"""Which paths a process and all it starts wrote to, renamed, removed or changed, as the kernel saw it: ``strace``."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

_CHANGES: Final = (
    "creat,rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,mkdirat,mknod,mknodat,link,linkat,symlink,symlinkat,"
    "chmod,fchmod,fchmodat,chown,fchown,lchown,fchownat,truncate,ftruncate,utimensat,setxattr,lsetxattr,fsetxattr,mount"
)
_CALL: Final = re.compile(r"(\w+)\((.*)\)\s+= (\S+)(?: \w+ \(.*\))?$")
# A path in a call: relative to a directory, whose own path is told, or absolute; or an open file alone.
_PLACE: Final = re.compile(r'(?:(?:AT_FDCWD|\d+)<((?:[^<>\\]|\\.)*)>, )?"((?:[^"\\]|\\.)*)"|\d+<((?:[^<>\\]|\\.)*)>')
_RESULT: Final = re.compile(r"\d+<(.*)>")
_WRITING: Final = ("O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND")
# These name their content or another file first, and then the place that they make.
_SECOND_ONLY: Final = frozenset({"symlink", "symlinkat", "link", "linkat"})


def can_watch() -> bool:
    """Whether processes may be watched here."""
    strace = shutil.which("strace")
    return strace is not None and subprocess.run([strace, "-qq", "-o", os.devnull, "true"], check=False).returncode == 0


def run_watched(command: Sequence[str], notes: Path, **settings: object) -> "subprocess.CompletedProcess[str]":
    """Run a command with all that it starts; what each process calls is written below ``notes``."""
    notes.mkdir()
    watching = [
        "strace",
        "-ff",
        "-qq",
        "--seccomp-bpf",
        "-y",
        "-s",
        "8192",
        "-e",
        f"trace=open,openat,openat2,{_CHANGES}",
    ]
    return subprocess.run(  # type: ignore[call-overload,no-any-return]
        [*watching, "-o", str(notes / "calls"), *command], check=False, capture_output=True, text=True, **settings
    )


def changed_paths(notes: Path) -> Iterator[tuple[str, str]]:
    """Yield each call that changes something, or was to, and the real path it is about."""
    for file in sorted(notes.iterdir()):
        for line in file.read_text(errors="surrogateescape").splitlines():
            call = _CALL.match(line)
            if call is None:
                continue
            name, arguments, result = call.groups()
            if name in {"open", "openat", "openat2"}:
                if any(flag in arguments for flag in _WRITING):
                    opened = _RESULT.match(result)
                    # What was opened is what the kernel says, whatever links were on the way.
                    yield line, opened[1] if opened else next(_places(arguments))
            else:
                places = [*_places(arguments)]
                for place in places[1:] if name in _SECOND_ONLY and len(places) > 1 else places:
                    yield line, place


def _places(arguments: str) -> Iterator[str]:
    for directory, path, file in _PLACE.findall(arguments):
        if file:
            yield file
        else:
            whole = os.path.normpath(os.path.join(directory, path))
            yield os.path.join(os.path.realpath(os.path.dirname(whole)), os.path.basename(whole))
