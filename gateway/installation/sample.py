"""The workspace for a first try: a few small files that nobody will miss."""

import os
import shutil
import tempfile

FILES = {
    "README.md": """\
# A place to try things

Nothing here matters. Change it, break it, take it back:

    $ ls
    $ sed -i s/Hello/Goodbye/ greet.py
    $ rm notes.md
    /rollback
    /rollback 1
    /redo
""",
    "greet.py": '''\
"""Greets whoever is named."""

import sys


def greeting(name: str) -> str:
    return f"Hello, {name}!"


if __name__ == "__main__":
    print(greeting(sys.argv[1] if len(sys.argv) > 1 else "world"))
''',
    "notes.md": """\
# Notes

- buy bread
- call the plumber
""",
    "Makefile": """\
all:
\tpython3 greet.py
""",
}


def ensure_sample(path: str) -> str:
    """Make the sample workspace if nothing stands at ``path``; whatever stands there is left as it is.

    It appears whole or not at all, also when two processes make it at once. Blocking.
    """
    if os.path.lexists(path):
        return path
    made = tempfile.mkdtemp(prefix=".sample-", dir=os.path.dirname(path))
    try:
        for name, content in FILES.items():
            with open(os.path.join(made, name), "w", encoding="utf-8") as file:
                file.write(content)
        os.rename(made, path)
    except FileExistsError:
        shutil.rmtree(made)
    except OSError:
        shutil.rmtree(made, ignore_errors=True)
        # A directory that is not empty cannot be renamed over: somebody else was quicker, and theirs stays.
        if not os.path.isdir(path):
            raise
    return path
