"""What stands at one path now, its content read and proved to have kept still."""

import hashlib
import os

from engine.checkpoints.reading import blob_oid
from engine.host.files import ContentChanged, Signature, Tree
from engine.model import Entry, EntryKind
from engine.store.reader import COPY_BYTES


def look_at(tree: Tree, path: str) -> tuple[Signature | None, Entry | None]:
    """Return what stands at a path now, its content read; a FIFO, socket or device is no entry but has a signature.

    Raises:
        ContentChanged: it changed while it was read, or is nothing that a checkpoint holds.
        OSError: it cannot be read.
    """
    signature = tree.signature(path)
    if signature is None:
        return None, None
    if signature.is_directory:
        return signature, Entry(EntryKind.DIRECTORY, signature.mode, None)
    if signature.is_link:
        return signature, Entry(EntryKind.SYMLINK, 0o777, blob_oid(tree.read_link(path)))
    if not signature.is_file:
        raise ContentChanged(path, signature)
    digest = hashlib.sha1(b"blob %d\0" % signature.size, usedforsecurity=False)
    with tree.open_file(path) as stream:
        while chunk := stream.read(COPY_BYTES):
            digest.update(chunk)
        if not signature.same_as(Signature.of(os.fstat(stream.fileno()))):
            raise ContentChanged(path, signature)
    return signature, Entry(EntryKind.FILE, signature.mode, digest.hexdigest())
