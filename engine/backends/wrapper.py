"""The small program that runs a command elsewhere: on another host, in a container, in a sandbox of a service.

POSIX sh and what busybox has, so that it runs wherever a command can. It makes a session of its own for the command
and says which, waits for the end, ends whatever the command left, and says how it went. What the command writes goes to
standard output, standard errors included; what the program itself says goes to standard errors, in lines that begin
with a tag of this run's own. A line on its standard input, or the end of it, makes it end the command: SIGTERM, then
SIGKILL. So a command ends also when whoever asked for it is gone.
"""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from engine.backends.processes import MARKER

LONGEST_COMMAND_BYTES: Final = 128 * 1024 - 1
"""Linux takes no longer argument (execve(2), MAX_ARG_STRLEN)."""

GATE: Final = 'IFS= read -r line && eval "$(printf %b "$line")"'
"""What ``/bin/sh -c`` is given: it runs the program that comes in one line, see ``one_line``.

Free of quotes, backslashes and line breaks that a login shell of any kind would take for its own.
"""

# To a shell a code of 137 and SIGKILL are the same; only what `jobs` prints right after the wait tells them apart.
# (Where /bin/sh is bash it prints nothing then, and a code above 128 counts as a signal.)
_PROGRAM: Final = r"""
exec 3<&0 4>&2 </dev/null
had_locale=${LC_ALL+yes} locale=${LC_ALL-} LC_ALL=C
say() { printf '\n%s %s\n' "$tag" "$*" >&4; }
cd -- "$directory" 2>&4 || { say nowhere; exit 0; }
for shell in /bin/bash /usr/bin/bash /usr/local/bin/bash /bin/sh; do [ -x "$shell" ] && break; done
members() {
    left=
    if [ -r /proc/self/stat ]; then
        for entry in /proc/[0-9]*; do
            { read -r line <"$entry/stat"; } 2>/dev/null || continue
            set -- ${line##*) }
            [ "$1" = Z ] || [ "$1" = X ] || [ "$3" != "$group" ] || left="$left ${entry#/proc/}"
        done
        for entry in $(grep -lszF "$marker" /proc/[0-9]*/environ 2>/dev/null); do
            entry=${entry#/proc/} entry=${entry%/environ}
            case "$left " in *" $entry "*) ;; *) left="$left $entry" ;; esac
        done
    elif kill -0 -- "-$group" 2>/dev/null; then
        left=" -$group"
    fi
    for entry in $kept; do
        case "$left " in *" $entry "*) left="${left%% "$entry"*}${left#* "$entry"}" ;; esac
    done
    [ -n "$left" ]
}
gone_within() {
    tries=$1
    while members; do
        [ "$tries" -gt 0 ] || return 1
        tries=$((tries - 1))
        sleep 0.1 2>/dev/null || sleep 1
    done
}
finish() {
    for signal in TERM KILL; do
        members || return 0
        # All at once, where all are to go: a shell whose child went before it would start the next command.
        [ "$kept" ] || kill -s "$signal" -- "-$group" 2>/dev/null
        kill -s "$signal" -- $left 2>/dev/null
        kill -s CONT -- $left 2>/dev/null
        if [ "$signal" = TERM ]; then gone_within "$grace" && return 0; else gone_within 50 && return 0; fi
    done
    say "stuck$left"
}
settling() {
    members
    for entry in $left; do
        case $(tr '\0' ' ' 2>/dev/null <"/proc/$entry/cmdline") in
            "$shell -c -- "* | nohup\ * | setsid\ * | */nohup\ * | */setsid\ *) return 0 ;;
        esac
    done
    return 1
}
keep() {
    tries=20
    while [ "$tries" -gt 0 ] && settling; do
        tries=$((tries - 1))
        sleep 0.1 2>/dev/null || sleep 1
    done
    members
    for entry in $left; do
        { read -r line <"/proc/$entry/stat"; } 2>/dev/null || continue
        set -- ${line##*) }
        [ "$4" != "$group" ] || grep -q '^SigIgn:.*[13579bdf]$' "/proc/$entry/status" 2>/dev/null || continue
        kept="$kept $entry"
        say "left $entry $(tr '\0\n' '  ' <"/proc/$entry/cmdline" 2>/dev/null)"
    done
}
start() {
    exec 3<&- 4>&-
    if [ "$had_locale" ]; then LC_ALL=$locale; export LC_ALL; else unset LC_ALL; fi
    surround
    exec "$@" "$shell" -c -- "$command" 2>&1
}
main() {
    kept=
    if command -v setsid >/dev/null 2>&1; then
        start setsid &
    else
        set -m 2>/dev/null
        start env &
    fi
    group=$!
    say "group $group"
    { read -r _ <&3; finish; } &
    watcher=$!
    wait "$group"
    status=$?
    jobs >&4
    say "exit $status"
    kill "$watcher" 2>/dev/null
    gone_within 2
    [ -z "$keeping" ] || keep
    finish
    say 'done'
}
if [ "$keeping" ]; then
    # What lives on may still write: somewhere, since a closed pipe would end it.
    main | ( trap '' HUP PIPE; cat 2>/dev/null; exec cat >/dev/null 2>&1 )
else
    main
fi
"""

_KILL: Final = r"""
kill -s KILL -- "-$group" 2>/dev/null
for entry in $(grep -lszF "$marker" /proc/[0-9]*/environ 2>/dev/null); do
    entry=${entry#/proc/}
    kill -s KILL "${entry%/environ}" 2>/dev/null
done
exit 0
"""

_SAFE = re.compile(rb"[^A-Za-z0-9 _.,:;=/@+-]")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ENDED_BY_ITSELF = re.compile(r"^\[\d+\]\W*(?:Done|Exit)\b")
_FIRST_SIGNAL_CODE = 128


def program(
    command: str, directory: str, environment: Mapping[str, str], mark: str, *, grace_s: float, keep: bool = False
) -> str:
    """Write the program that runs a command in a directory; ``mark`` is 32 hexadecimal digits of this run's own.

    ``environment`` is added to what the place gives by itself. With ``keep`` what the command detaches (``nohup``,
    ``setsid``) lives on and is named.
    """
    settings = {
        "tag": mark,
        "marker": f"{MARKER}={mark}",
        "directory": directory,
        "command": command,
        "grace": str(round(grace_s * 10)),
        "keeping": "yes" if keep else "",
    }
    exported = {MARKER: mark, **{name: value for name, value in environment.items() if _VARIABLE.fullmatch(name)}}
    lines = [f"{name}={shlex.quote(value)}" for name, value in settings.items()]
    surround = "; ".join(f"export {name}={shlex.quote(value)}" for name, value in exported.items())
    return "\n".join([*lines, f"surround() {{ {surround}; }}", _PROGRAM])


def killing(group: int, mark: str) -> str:
    """Write a program that kills a run by way of another channel, when its own does not answer."""
    return f"group={group} marker={shlex.quote(f'{MARKER}={mark}')}\n{_KILL}"


def one_line(text: str) -> bytes:
    """Write a program as the line that ``GATE`` takes."""
    data = text.encode("utf-8", "surrogateescape")
    return _SAFE.sub(lambda match: b"\\0%03o" % match[0][0], data) + b"\n"


@dataclass(slots=True)
class Verdict:
    """What the program has said so far; fed with the bytes of its standard errors.

    ``group`` is set once the command runs, ``exit_code`` or ``signal`` once it has ended, ``done`` when nothing of it
    is left but ``left``, which lives on as asked for, and ``stuck``, which cannot be ended. ``errors`` is what else
    was written there: by a client that cannot connect, by a shell that does not start.
    """

    mark: str
    group: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    nowhere: bool = False
    stuck: bool = False
    done: bool = False
    left: list[str] = field(default_factory=list)
    errors: str = ""
    _unread: bytes = b""
    _exited: bool = False

    @property
    def ended(self) -> bool:
        """Whether it is known how the command ended."""
        return self.exit_code is not None or self.signal is not None

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            self._take(line.decode("utf-8", "replace"))

    def close(self) -> None:
        """Take what has no line end; nothing more comes."""
        self.feed(b"\n")

    def _take(self, line: str) -> None:
        """Take one line; what a shell says of its jobs is no error."""
        tag, _, said = line.partition(" ")
        if tag == self.mark:
            word, _, rest = said.partition(" ")
            self._understand(word, rest)
        elif line.startswith("["):
            self._exited |= bool(_ENDED_BY_ITSELF.match(line))
        elif line.strip() and len(self.errors) < 4096:  # noqa: PLR2004 - enough for any client's complaint
            self.errors += f"{line.strip()}\n"

    def _understand(self, word: str, rest: str) -> None:
        match word:
            case "group":
                self.group = int(rest)
            case "exit":
                status = int(rest)
                if status > _FIRST_SIGNAL_CODE and not self._exited:
                    self.signal = status - _FIRST_SIGNAL_CODE
                else:
                    self.exit_code = status
            case "left":
                self.left.append(rest.strip())
            case "stuck":
                self.stuck = True
            case "nowhere":
                self.nowhere = True
            case "done":
                self.done = True
