"""What is source: the names that never are, what ``.gitignore`` hides, and what the user's repository tracks.

A path that an earlier capture holds stays source as long as it exists, as a tracked file does in git, so that a
change of rules alone never looks like a deletion.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import translate

from pathspec import GitIgnoreSpec

from engine.checkpoints.patterns import parse_patterns
from engine.host.files import TEMP_PREFIX

_MISSED_DIRECTORIES = {
    # version-control internals
    ".git", ".hg", ".svn", ".bzr", ".jj", "_darcs", "CVS",
    # installed packages
    "node_modules", "bower_components", "jspm_packages", "site-packages", ".venv", ".bundle", ".eggs", "Pods",
    ".pnpm-store", ".yarn",
    # build output
    "build", "dist", "target", "_build", ".next", ".nuxt", ".output", "DerivedData", "htmlcov", "coverage",
    ".dart_tool", ".stack-work", "dist-newstyle",
    # editor state
    ".idea", ".vscode", ".vs", ".fleet", ".zed",
}  # fmt: skip
_MADE_ANEW_DIRECTORIES = {
    # tool caches
    "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".tox", ".nox", ".cache",
    ".parcel-cache", ".turbo", ".gradle", ".terraform", ".serverless", ".sass-cache", ".ipynb_checkpoints",
    ".import_linter_cache", ".nyc_output", ".pytype", ".angular", ".svelte-kit", ".ccache",
    # OS junk
    ".Trash", ".Trashes", ".Spotlight-V100", ".fseventsd", "__MACOSX", "$RECYCLE.BIN",
}  # fmt: skip
NOT_SOURCE_DIRECTORIES = _MISSED_DIRECTORIES | _MADE_ANEW_DIRECTORIES
_NOT_SOURCE_DIRECTORY_PATTERNS = ("*.egg-info", "*.dSYM", "cmake-build-*", ".Trash-*")
_MISSED_FILE_PATTERNS = ("*.log", "*.log.[0-9]*", "*~", "*.tmp~")
_MADE_ANEW_FILE_PATTERNS = (
    "*.py[cod]", "*.o", "*.obj", "*.class", "*.gch", "*.pch",
    "*.sw[a-p]", ".#*", "#*#",
    ".DS_Store", "._*", "Thumbs.db", "ehthumbs.db", "desktop.ini", ".directory",
    ".coverage", ".coverage.*", ".eslintcache", ".stylelintcache", "*.tsbuildinfo",
    f"{TEMP_PREFIX}*",
)  # fmt: skip
_SECRET_PATTERNS = (
    ".env", ".env.*", "*.env", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk",
    "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", ".netrc", "_netrc", ".pgpass", ".pypirc", ".npmrc",
    ".git-credentials", ".htpasswd", "credentials", "credentials.json", "service-account*.json",
    "secrets.y*ml", "secrets.json", "secrets.toml",
)  # fmt: skip
_NOT_SECRET_PATTERNS = (".env.example", ".env.sample", ".env.template", ".env.dist", ".env.defaults")

VIRTUALENV_MARKERS = {"pyvenv.cfg", "conda-meta"}


def _any_of(patterns: tuple[str, ...]) -> Callable[[str], re.Match[str] | None]:
    return re.compile("|".join(translate(pattern) for pattern in patterns)).match


_is_junk_directory = _any_of(_NOT_SOURCE_DIRECTORY_PATTERNS)
_is_junk_file = _any_of(_MISSED_FILE_PATTERNS + _MADE_ANEW_FILE_PATTERNS)
_is_made_anew_file = _any_of(_MADE_ANEW_FILE_PATTERNS)
_is_secret = _any_of(_SECRET_PATTERNS)
_is_no_secret = _any_of(_NOT_SECRET_PATTERNS)


def is_secret_name(name: str) -> bool:
    """Whether a file of this name is taken for a secret: credentials, keys, environment files."""
    lowered = name.casefold()
    return bool(_is_secret(lowered)) and not _is_no_secret(lowered)


def is_junk(name: str) -> bool:
    """Whether a file or directory of this name is made by a tool for itself: caches, build output, editor state."""
    return name in NOT_SOURCE_DIRECTORIES or bool(_is_junk_directory(name)) or bool(_is_junk_file(name))


def is_made_anew(name: str) -> bool:
    """Whether tools make a file or directory of this name again by themselves, so that nobody misses it: a cache."""
    return name in _MADE_ANEW_DIRECTORIES or bool(_is_made_anew_file(name))


@dataclass(frozen=True, slots=True)
class Tracked:
    """What the user's repository tracks: files, and the directories above them."""

    files: frozenset[str] = frozenset()
    directories: frozenset[str] = frozenset()

    @classmethod
    def of(cls, files: frozenset[str]) -> "Tracked":
        """Make it from the files."""
        directories: set[str] = set()
        for path in files:
            parent = os.path.dirname(path)
            while parent and parent not in directories:
                directories.add(parent)
                parent = os.path.dirname(parent)
        return cls(files, frozenset(directories))


@dataclass(frozen=True, slots=True)
class SourceRules:
    """Everything that decides for one capture.

    ``known`` maps the paths of the last capture; ``forced`` are files a tool named, ``forced_parents`` the
    directories above them.
    """

    tracked: Tracked
    known: Mapping[str, object]
    forced: frozenset[str] = frozenset()
    forced_parents: frozenset[str] = frozenset()

    def top(self, patterns: bytes) -> "DirectoryRules":
        """Return the rules of the root; ``patterns`` is what the repository's own exclude file says."""
        rules = DirectoryRules(self)
        return rules.with_patterns("", patterns) if patterns else rules


@dataclass(frozen=True, slots=True)
class DirectoryRules:
    """What holds inside one directory.

    ``specs`` are the ``.gitignore`` files above, nearest last, each with the length of its directory's prefix.
    ``closed`` says that nothing new in here is source.
    """

    rules: SourceRules
    specs: tuple[tuple[int, GitIgnoreSpec], ...] = field(default=())
    closed: bool = False

    def with_patterns(self, directory: str, content: bytes) -> "DirectoryRules":
        """Return these rules with a directory's ``.gitignore`` added; a pattern that cannot be read is left out."""
        spec = parse_patterns(content)
        if not spec.patterns:
            return self
        return DirectoryRules(self.rules, (*self.specs, (len(directory) + 1 if directory else 0, spec)), self.closed)

    def enter(self, path: str, name: str) -> "DirectoryRules | None":
        """Return the rules inside a directory; ``None`` when it is not source at all."""
        rules = self.rules
        excluded = self.closed or self._ignored(path + "/")
        if not excluded and not (name in NOT_SOURCE_DIRECTORIES or _is_junk_directory(name)):
            return self
        if path in rules.tracked.directories:
            return DirectoryRules(rules, self.specs, excluded)
        if path in rules.known or path in rules.forced_parents:
            return self._shut()
        return None

    def _shut(self) -> "DirectoryRules":
        return self if self.closed else DirectoryRules(self.rules, self.specs, closed=True)

    def admits(self, path: str, name: str) -> bool:
        """Whether a file or symlink is source."""
        rules = self.rules
        if path in rules.known or path in rules.tracked.files or path in rules.forced:
            return True
        return not (self.closed or _is_junk_file(name) or self._ignored(path))

    def _ignored(self, path: str) -> bool:
        for prefix, spec in reversed(self.specs):
            verdict = spec.check_file(path[prefix:]).include
            if verdict is not None:
                return verdict
        return False
