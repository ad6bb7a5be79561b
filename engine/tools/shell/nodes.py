"""A parse tree of plain values, so that nothing but `grammar` depends on the parser's own objects."""

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(slots=True)
class Node:
    """One node: its kind in the grammar, its bytes in the source, its children in order.

    `role` is the name its parent knows it by, "" for none. `named` is false for fixed tokens such as `;`.
    """

    type: str
    start: int
    end: int
    named: bool
    missing: bool
    role: str
    children: list["Node"] = field(default_factory=list)

    def child(self, role: str) -> "Node | None":
        """The first child known by this name."""
        return next((child for child in self.children if child.role == role), None)

    def all(self, role: str) -> list["Node"]:
        """Every child known by this name."""
        return [child for child in self.children if child.role == role]

    def named_children(self) -> list["Node"]:
        """The children that are not fixed tokens."""
        return [child for child in self.children if child.named]

    def walk(self) -> Iterator["Node"]:
        """This node and everything below it, parents first."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))
