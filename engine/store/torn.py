"""Names that a power loss left torn: files below ``refs/`` that hold no id. git passes over them in silence."""

import os
import re
from collections.abc import Collection, Iterator

from engine.store.layout import Layout

_REF_CONTENT = re.compile(rb"[0-9a-f]{40}\n")
_MOST_CONTENT_BYTES = 1024


def find_torn(layout: Layout, below: str = "refs", *, beside: Collection[str] = ()) -> Iterator[tuple[str, str]]:
    """Yield the torn names below a prefix with what is left in their files; directories in ``beside`` are left out.

    Raises:
        OSError: one cannot be read, which proves nothing.
    """
    for directory, names, files in os.walk(os.path.join(layout.store, below)):
        names[:] = [name for name in names if name not in beside]
        for name in files:
            path = os.path.join(directory, name)
            if name.endswith(".lock"):
                continue
            try:
                with open(path, "rb") as stream:
                    content = stream.read(_MOST_CONTENT_BYTES)
            except FileNotFoundError:
                continue  # packed or dropped meanwhile
            if _REF_CONTENT.fullmatch(content) is None:
                yield os.path.relpath(path, layout.store), content.decode("ascii", "backslashreplace")
