"""A stand-in for Apptainer, which Debian does not carry: it takes the documented command line, and nothing else.

An instance is a process and mount namespace of its own in a copy of the image's directory; ``exec`` enters it by
``nsenter`` and ``chroot``. What it does not know it refuses, as the real one would an unknown flag.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.containers import root_file_system

_PROGRAM = r"""#!/bin/sh
state=@STATE@
fail() { echo "FATAL:   $*" >&2; exit 255; }
word=$1; shift
if [ "$word" = exec ]; then
    clean=
    while :; do
        case $1 in
            --cleanenv) clean=yes ;;
            --pwd=/) ;;
            instance://*) name=${1#instance://}; shift; break ;;
            *) fail "unknown flag: $1" ;;
        esac
        shift
    done
    [ -f "$state/$name/pid" ] || fail "no instance found with name $name"
    [ "$clean" ] && set -- env -i PATH=/bin HOME=/root "$@"
    exec nsenter -t "$(cat "$state/$name/pid")" -m -p -- chroot "$state/$name/root" "$@"
fi
[ "$word" = instance ] || fail "unknown command: $word"
action=$1; shift
case $action in
    list)
        [ "$*" = --json ] || fail "unknown flag: $*"
        printf '{"instances": ['
        comma=
        for file in "$state"/*/pid; do
            [ -f "$file" ] && kill -0 "$(cat "$file")" 2>/dev/null || continue
            printf '%s{"instance": "%s", "pid": %s}' "$comma" "$(basename "$(dirname "$file")")" "$(cat "$file")"
            comma=,
        done
        echo ']}' ;;
    stop)
        [ -f "$state/$1/pid" ] || fail "no instance found"
        kill -9 "$(cat "$state/$1/pid")"
        rm -rf "${state:?}/$1" ;;
    start)
        arguments=$* binds=
        while :; do
            case $1 in
                --bind=*) binds="$binds ${1#--bind=}" ;;
                --containall|--writable-tmpfs|--net|--network=none|--cpus=*|--memory=*|--pids-limit=*) ;;
                -*) fail "unknown flag: $1" ;;
                *) break ;;
            esac
            shift
        done
        mkdir -p "$state/$2"
        echo "$arguments" >"$state/$2/arguments"
        cp -a "$1" "$state/$2/root"
        for bind in $binds; do mkdir -p "$state/$2/root${bind#*:}"; done
        touch "$state/$2/root/dev/null" "$state/$2/root/dev/zero"
        unshare --mount --pid --fork sh -c '
            root=$1 binds=$2
            for device in null zero; do mount --bind "/dev/$device" "$root/dev/$device"; done
            mount -t proc proc "$root/proc"
            for bind in $binds; do mount --bind "${bind%%:*}" "$root${bind#*:}"; done
            exec chroot "$root" /bin/sh -c "while :; do sleep 9999 & wait; done"
        ' sh "$state/$2/root" "$binds" </dev/null >/dev/null 2>&1 &
        first=
        while [ -z "$first" ]; do read -r first _ <"/proc/$!/task/$!/children"; done
        until nsenter -t "$first" -m test -e "$state/$2/root/proc/1/stat" 2>/dev/null; do kill -0 "$!" || exit 1; done
        echo "$first" >"$state/$2/pid" ;;
    *) fail "unknown command: $action" ;;
esac
"""


@dataclass(frozen=True)
class Apptainer:
    """The program, an image for it, and where it keeps its instances."""

    cli: str
    image: str
    state: Path

    def options(self, **more: Any) -> dict[str, Any]:
        """The options of a backend that runs here."""
        return {"cli": self.cli, "image": self.image, **more}

    def names(self) -> list[str]:
        """The instances there are."""
        return sorted(path.name for path in self.state.iterdir())

    def __call__(self, *arguments: str) -> str:
        """Call it as a person would."""
        return subprocess.run([self.cli, *arguments], check=True, capture_output=True, timeout=60).stdout.decode()


@contextmanager
def opened_apptainer(base: Path) -> Iterator[Apptainer]:
    """Make the program and an image; at the end no instance is left."""
    root_file_system(base / "image")
    (base / "state").mkdir()
    cli = base / "apptainer"
    cli.write_text(_PROGRAM.replace("@STATE@", str(base / "state")))
    cli.chmod(0o755)
    made = Apptainer(str(cli), str(base / "image"), base / "state")
    try:
        yield made
    finally:
        for name in made.names():
            made("instance", "stop", name)
