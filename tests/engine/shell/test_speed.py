"""Understanding costs little: nothing at start-up, and not much for a command."""

import subprocess
import sys
import time

import pytest

from engine.tools.shell import understand

TYPICAL = [
    "ls -la src | grep foo",
    "rm -rf build && git status",
    "sed -i 's/a/b/' config.py",
    "git log --oneline -5",
    "cat > f <<'EOF'\nhello\nEOF\n",
    'for f in *.py; do cat "$f"; done',
    "bash -lc 'cd sub && make test 2>&1 | tail -20'",
]


def test_the_parser_is_not_loaded_before_the_first_command():
    script = "import sys, engine.tools.shell; sys.exit('tree_sitter' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.bench
@pytest.mark.parametrize("command", TYPICAL)
def test_a_typical_command_takes_about_a_millisecond(command):
    best_s = min(timed(command) for _ in range(50))

    assert best_s < 0.001


def timed(command: str) -> float:
    started = time.perf_counter()
    understand(command, cwd="/w/app", root="/w/app", home="/home/user")
    return time.perf_counter() - started
