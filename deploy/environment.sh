# Sourced by deploy/run and deploy/test: makes sure that a virtual environment of this checkout is ready.
#
# The usual start compares two stamp files and starts nothing else, so it is quick and needs no network. When a stamp
# differs, deploy/install.py does the work. Everything said here goes to stderr: stdout belongs to the program.
# Expects $root, the checkout's absolute path. POSIX sh.

say() { printf 'takeback: %s\n' "$*" >&2; }

# Exit 3: too old; 4: cannot make virtual environments; 5: built without a module that Takeback needs.
# shellcheck disable=SC2089 # Python's quotes, not the shell's
python_probe='
import sys
if sys.version_info < (3, 11):
    sys.exit(3)
try:
    import ensurepip, venv
except ImportError:
    sys.exit(4)
try:
    import sqlite3, ssl
except ImportError:
    sys.exit(5)
'

# Sets $python to the first usable Python, newest first; only to $PYTHON when that is set.
find_python() {
    if [ -n "${PYTHON:-}" ]; then
        set -- "$PYTHON"
    else
        set -- python3.14 python3.13 python3.12 python3.11 python3
    fi
    newline='
'
    rejected='' without_venv=''
    for python; do
        command -v "$python" >/dev/null 2>&1 || [ -n "${PYTHON:-}" ] || continue
        status=0
        "$python" -I -c "$python_probe" </dev/null >/dev/null 2>&1 || status=$?
        case $status in
        0) return ;;
        3) reason='is older than 3.11' ;;
        4) reason='cannot make virtual environments (its module ensurepip is missing)' without_venv=$python ;;
        5) reason='was built without its ssl or sqlite3 module' ;;
        *)
            # Unasked, it may be a version manager's shim with nothing behind it: no news.
            [ -n "${PYTHON:-}" ] || continue
            reason='(from the variable PYTHON) does not start as Python 3'
            ;;
        esac
        rejected="$rejected$newline  $(command -v "$python" || printf '%s' "$python") $reason"
    done
    say "Python 3.11 or newer, with its venv module, is needed and was not found$rejected"
    if [ -n "$without_venv" ]; then
        version=$("$without_venv" -I -c 'import sys; print("%d.%d" % sys.version_info[:2])' </dev/null)
        say "on Debian and Ubuntu, as root: apt install python$version-venv"
    else
        say 'on Debian 12, Ubuntu 24.04 and later, as root: apt install python3 python3-venv'
    fi
    say 'on macOS: brew install python@3.13'
    say 'or name another one: PYTHON=/path/to/python3.11 and the same command again'
    return 1
}

# Sets $lock to the lock file that TAKEBACK_EXTRAS asks for; where it asks for nothing, to the one that DIRECTORY holds.
choose_lock() {
    lock=requirements.lock
    if [ -z "${TAKEBACK_EXTRAS:-}" ]; then
        [ ! -r "$1/takeback-lock" ] || read -r lock <"$1/takeback-lock"
        [ -f "$root/$lock" ] || lock=requirements.lock
        return
    fi
    case ,$TAKEBACK_EXTRAS, in
    ,none,) return ;;
    esac
    rest=$TAKEBACK_EXTRAS,
    while [ -n "$rest" ]; do
        case ${rest%%,*} in
        openai | anthropic | google | model) lock=requirements-model.lock ;;
        *)
            say "TAKEBACK_EXTRAS=$TAKEBACK_EXTRAS: ${rest%%,*} is none of openai, anthropic, google, model, none"
            say 'what rents sandboxes is added by hand: .venv/bin/pip install -e ".[modal]"'
            exit 2
            ;;
        esac
        rest=${rest#*,}
    done
}

# environment_ready DIRECTORY LOCKFILE: whether what the stamps say is what the checkout says.
environment_ready() {
    [ -x "$1/bin/python" ] && [ -x "$1/bin/gateway" ] &&
        cmp -s -- "$2" "$1/takeback-packages" &&
        { printf '%s\n' "$root" && cat -- "$root/pyproject.toml"; } | cmp -s - "$1/takeback-project"
}

# ensure_environment DIRECTORY LOCKFILE: ready at return, or the script ends with a reason.
ensure_environment() {
    environment_ready "$1" "$2" && return
    find_python || exit 1
    # Its own stdin and stdout: the caller's belong to the program that starts afterwards.
    "$python" -I "$root/deploy/install.py" "$root" "$1" "$2" </dev/null >&2 || exit $?
}
