"""``python -m gateway`` is the command ``gateway``."""

from gateway.cli import main

main()
