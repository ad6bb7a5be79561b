"""What can be wrong with a configuration, as one error that names every place at once."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding: where it stands (a file and line, or a variable) and what is wrong, without any secret."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


class ConfigInvalid(Exception):
    """The configuration cannot be used; nothing was started."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        if len(self.problems) == 1:
            super().__init__(str(self.problems[0]))
            return
        lines = "\n".join(f"  {problem}" for problem in self.problems)
        super().__init__(f"the configuration has {len(self.problems)} problems:\n{lines}")
