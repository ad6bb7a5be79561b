"""The real program with JSON lines as its chats and its numbers served, made of what ``run`` and ``--jsonl`` are.

Run as a program, with ``TAKEBACK_HTTP__PORT=0`` and the workspace to work in as its argument; the log, which names the
address, goes to stderr.
"""

import sys

from gateway.app import ConsoleWishes, FrontEnd
from gateway.cli.running import run_gateway

if __name__ == "__main__":
    sys.exit(run_gateway(ConsoleWishes(FrontEnd.JSON_LINES, workspace=sys.argv[1], stays=True), log_to_file=False))
