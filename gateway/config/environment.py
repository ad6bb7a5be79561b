"""Reads the environment: variables that override keys, and what of it commands may see.

``TAKEBACK_CHECKPOINTS__ENABLED=1`` sets ``checkpoints.enabled``; the same name with ``_FILE`` names a file
that holds the value. An empty variable counts as absent. A variable that looks like a key and is none is an
error.
"""

import difflib
import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from gateway.config import keys
from gateway.config.keys import ENVIRONMENT_PREFIX, NESTING, Key, Shape
from gateway.config.problems import ConfigInvalid, Problem
from gateway.config.yaml_file import Source
from gateway.home import HOME_VARIABLE

FILE_SUFFIX = "_FILE"
LARGEST_FILE_BYTES = 1024 * 1024
COMMAND_VARIABLES = frozenset({"PATH", "HOME", "LANG", "LANGUAGE", "TERM", "TMPDIR", "USER", "LOGNAME", "SHELL", "TZ"})
"""What an agent's commands inherit, beside ``LC_*``; anything else may be a secret."""

CLIENT_VARIABLES = frozenset(
    {"SSH_AUTH_SOCK", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY"}
    | {"CONTAINER_HOST", "CONTAINERS_CONF", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME"}
    | {"APPTAINER_CACHEDIR", "APPTAINER_CONFIGDIR", "SINGULARITY_CACHEDIR"}
)
"""What ssh, docker and their like are told of this machine beyond that: where an agent, a daemon, their files are."""


_SECRET_NAME = re.compile(
    r"(?:\A|_)(?:API_?KEY|ACCESS_KEY|SECRET|TOKEN|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)(?:_|\Z)"
)
_NO_VALUE = re.compile(r"(?:FILE|PATH|DIR|URL|ID|NAME|TYPE|HOST|PORT|USER|LIFETIME|TTL)\Z")
_PLACE = ("/", "~", "./", "file:", "http:", "https:")
SHORTEST_SECRET = 8
"""A shorter value is too likely to stand in a text by chance."""


def secret_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables whose names say that their values are secrets, and whose values may be."""
    return {
        name: value
        for name, value in environment.items()
        if _SECRET_NAME.search(name.upper())
        and not _NO_VALUE.search(name.upper())
        and len(value) >= SHORTEST_SECRET
        and not value.startswith(_PLACE)
    }


def command_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The part of the environment that commands may see."""
    return {name: value for name, value in environment.items() if name in COMMAND_VARIABLES or name.startswith("LC_")}


def client_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The part of the environment that the programs see by which commands are run elsewhere."""
    kept = {name: value for name, value in environment.items() if name in CLIENT_VARIABLES}
    return {**command_environment(environment), **kept}


def load(environment: Mapping[str, str], names: Sequence[str]) -> Source:
    """Read every overriding variable; ``names`` are the known ones of one's own, which variables spell in capitals.

    Raises:
        ConfigInvalid: a variable names no key, cannot be read, or stands beside its ``_FILE`` form.
    """
    tree: dict[str, Any] = {}
    places: dict[tuple[str, ...], str] = {}
    problems: list[Problem] = []
    for name in sorted(environment):
        if not name.startswith(ENVIRONMENT_PREFIX) or name == HOME_VARIABLE or not environment[name]:
            continue
        try:
            found = _assignment(name, environment[name], names)
            if found is None:
                continue
            path, value = found
            if path in places:
                raise ConfigInvalid([Problem(name, f"{places[path]} is set too; keep one of them")])  # noqa: TRY301
            places[path] = name
            _put(tree, path, value)
        except ConfigInvalid as invalid:
            problems += invalid.problems
    if problems:
        raise ConfigInvalid(problems)
    return Source(tree, places)


def _assignment(name: str, value: str, names: Sequence[str]) -> tuple[tuple[str, ...], Any] | None:
    """The key and value that one variable sets; ``None`` for a variable that is not about a key."""
    parts = name.removeprefix(ENVIRONMENT_PREFIX).split(NESTING)
    path = _path(parts, names)
    if path in keys.IGNORED:
        return path, value
    key = keys.find(path)
    if key is not None:
        return path, _value(name, key, value)
    if name.endswith(FILE_SUFFIX):
        path = _path([*parts[:-1], parts[-1].removesuffix(FILE_SUFFIX)], names)
        key = keys.find(path)
        if key is not None:
            return path, _value(name, key, _content(name, value))
    if len(parts) == 1 and not difflib.get_close_matches(path[0], keys.ROOT.below, n=1, cutoff=0.8):
        # Not every variable with this prefix is ours: container platforms add TAKEBACK_PORT to a service's.
        return None
    raise ConfigInvalid([Problem(name, f"no such key; the nearest is {keys.variable(keys.nearest(path))}")])


def _path(parts: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """The key that a variable's name spells; the capitals, dots and dashes of a name of one's own do not matter."""
    spelled = {name.upper().replace("-", "_").replace(".", "_"): name for name in names}
    path: list[str] = []
    for part in parts:
        above = keys.find(tuple(path))
        own = above is not None and above.shape is Shape.NAMED
        path.append(spelled.get(part.upper(), part.lower()) if own else part.lower())
    return tuple(path)


def _content(name: str, path: str) -> str:
    """What stands in the file that a ``_FILE`` variable names, without the newline that editors add."""
    try:
        with open(os.path.expanduser(path), "rb") as file:
            content = file.read(LARGEST_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigInvalid([Problem(name, f"{path} cannot be read: {error.strerror}")]) from error
    if len(content) > LARGEST_FILE_BYTES:
        raise ConfigInvalid([Problem(name, f"{path} is too large for a value")])
    try:
        return content.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise ConfigInvalid([Problem(name, f"{path} is not UTF-8 text")]) from None


def _value(name: str, key: Key, text: str) -> Any:
    """A list is JSON or separated by commas; a section is JSON; anything else is the text itself."""
    if key.shape is Shape.VALUE:
        return text
    if key.shape is Shape.LIST and not text.lstrip().startswith("["):
        return [item.strip() for item in text.split(",") if item.strip()]
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise ConfigInvalid([Problem(name, "must be JSON, because it sets more than one value")]) from None
    if not isinstance(value, list if key.shape is Shape.LIST else dict):
        wanted = "list" if key.shape is Shape.LIST else "object"
        raise ConfigInvalid([Problem(name, f"must be a JSON {wanted}")])
    return value


def _put(tree: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    """Set a value deep in a tree; a more precise variable wins over one that sets the whole section."""
    for part in path[:-1]:
        tree = tree.setdefault(part, {})
    if isinstance(value, dict) and isinstance(tree.get(path[-1]), dict):
        value = {**value, **tree[path[-1]]}
    tree[path[-1]] = value
