"""Blots out of what is kept and shown whatever is a known secret or has the shape of a key.

A command, a file or a model still gets the text that a person typed as it is; lists, records, answers, and what a model
is told of results, do not. The shapes are those that providers give their keys, which nearly nothing else has; what
stands behind a name such as ``password`` counts where it looks like a value and not like code.
"""

import re
from collections.abc import Iterable

from gateway.logs import hidden

MARK = "[secret hidden]"
"""Stands where a secret was."""

_NAME = (
    r"(?:api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|client[_-]?secret|secret|token|passw(?:or)?d"
    r"|passphrase)"
)
# With a letter and a digit in it, and nothing that is only in code: a type, a call, a variable is no value.
# No look ahead goes further than any secret, so that a long text takes no longer than its length.
_MIXED = r"(?=[^\s\"'`,;&]{0,200}\d)(?=[^\s\"'`,;&]{0,200}[A-Za-z])"
_PLAIN = _MIXED + r"[^\s\"'`,;&|(){}\[\]<>$\\]{%d,1000}+(?=[\s\"'`,;&|]|\Z)"

_KEYS = re.compile(
    r"(?<![\w-])()(?:"
    r"sk-(?=[\w-]{0,200}\d)[\w-]{20,}"  # OpenAI, Anthropic, OpenRouter, and others that took over the form
    r"|gsk_\w{20,}|xai-[\w-]{20,}|hf_\w{30,}"  # Groq, xAI, Hugging Face
    r"|[sr]k_(?:live|test)_\w{16,}"  # Stripe
    r"|gh[oprsu]_\w{36,}|github_pat_\w{22,}|glpat-[\w-]{20,}"  # GitHub, GitLab
    r"|xox[a-z]-[\w-]{10,}|xapp-\d-[\w-]{10,}"  # Slack
    r"|\d{8,10}:AA[\w-]{33,}"  # Telegram
    r"|A(?:KIA|SIA)[0-9A-Z]{16}(?!\w)"  # AWS
    r"|AIza[\w-]{35,}|ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,}"  # Google
    r"|npm_\w{36}|pypi-AgEI[\w-]{20,}"  # package registries
    r"|SG\.[\w-]{16,}\.[\w-]{16,}|dop_v1_[0-9a-f]{64}"  # SendGrid, DigitalOcean
    r"|eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"  # a JSON web token
    r")"
)
_SHAPES = (
    _KEYS,
    re.compile(r"(PRIVATE KEY-----\n)[^-]{40,}(?=-----END|\Z)"),
    re.compile(r"(\bbearer\s)(?=[\w.~+/-]{0,200}\d)[\w.~+/-]{16,}=*", re.IGNORECASE),
    re.compile(r"(\bauthorization[\"']?: ?[\"']?basic\s)[\w+/]{8,}=*", re.IGNORECASE),
    re.compile(r"(://[^/\s:@\"']{0,64}:)[^/\s@\"'$<{]{3,1000}+(?=@)"),
    re.compile(
        rf"({_NAME}[\"']?\s{{0,3}}[=:]\s{{0,3}}[\"']){_MIXED}[^\s\"'${{}}<>]{{6,1000}}+(?=[\"'])", re.IGNORECASE
    ),
    re.compile(rf"({_NAME}=|--?{_NAME} )" + _PLAIN % 6, re.IGNORECASE),
    re.compile(rf"({_NAME}[\"']?: )" + _PLAIN % 8, re.IGNORECASE),
)
"""Each keeps what its group holds, which says what the secret is for."""


def blotted(text: str, secrets: Iterable[str] = ()) -> str:
    """A text without any of ``secrets`` and without what has the shape of a key."""
    text = hidden(text, secrets, MARK)
    for shape in _SHAPES:
        text = shape.sub(rf"\g<1>{MARK}", text)
    return text
