"""Tables written one command a line."""


def split(table: str) -> list[str]:
    """The commands of a table; a line that leaves a single quote open goes on in the next one."""
    commands: list[str] = []
    for line in table.strip().split("\n"):
        if commands and commands[-1].count("'") % 2:
            commands[-1] += "\n" + line
        else:
            commands.append(line)
    return commands
