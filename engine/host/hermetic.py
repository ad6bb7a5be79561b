"""What every git of ours is told, so that nobody else has a say in what it does."""

import os

ENVIRONMENT = {
    "LC_ALL": "C",
    "TZ": "UTC",
    "HOME": "/nonexistent",
    "XDG_CONFIG_HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "false",
    "GIT_ASKPASS": "false",
    "GIT_AUTHOR_NAME": "Takeback",
    "GIT_AUTHOR_EMAIL": "takeback@localhost",
    "GIT_COMMITTER_NAME": "Takeback",
    "GIT_COMMITTER_EMAIL": "takeback@localhost",
}
"""The whole environment of a git, but for where it works and what the call adds."""

SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.quotePath=false",
    "core.protectNTFS=false",
    "core.protectHFS=false",
    "core.fsync=committed",
    "core.fsyncMethod=batch",
    "commit.gpgSign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.allow=never",
    "diff.external=",
    "diff.renames=false",
)
"""What every git is told, over the configuration of the store."""

STRICT_SETTINGS = (
    "core.trustctime=true",
    "core.checkStat=default",
    "core.fileMode=true",
    "core.symlinks=true",
    "core.ignoreStat=false",
    "core.untrackedCache=false",
    "core.preloadIndex=true",
    "core.precomposeUnicode=false",
    "core.ignoreCase=false",
)
"""What makes git's judgement by stat data as strict as it can be."""
