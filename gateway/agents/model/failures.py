"""What a chat says when a model cannot answer: what happened, whose word that is, and what to do next.

What the server itself said is quoted shortly and without any key; of a key that it does not know nothing is quoted,
because servers repeat keys in such answers.
"""

import json
from collections.abc import Callable, Collection, Mapping

from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelOverloadedError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelServerError,
    ModelTimeoutError,
    ModelUnavailableError,
    UnexpectedModelBehavior,
)

from gateway.config.agent import ModelChoice
from gateway.config.providers import PROVIDERS
from gateway.logs import hidden
from gateway.render import one_line

QUOTED_CHARACTERS = 200
"""How much of a server's own words is quoted."""

FORBIDDEN = 403

AGAIN = "/retry tries again; /model shows what else there is."


def sentence(error: Exception, choice: ModelChoice, secrets: Collection[str]) -> str:
    """Say what went wrong with a request; ``secrets`` are blotted out of whatever is quoted."""
    for kind in type(error).__mro__:
        if kind in SENTENCES:
            # Before they are cut: a part of a key is no secret that anybody would know.
            words = one_line(hidden(words_of(error), secrets), QUOTED_CHARACTERS).rstrip(".")
            return hidden(SENTENCES[kind](error, choice, f": {words}." if words else "."), secrets)
    return f"The model {choice.shown} could not be asked ({type(error).__name__}). {AGAIN}"


def words_of(error: Exception) -> str:
    """What a server, or the library, said itself."""
    if not isinstance(error, ModelAPIError) or type(error) is ModelAPIError:
        return str(getattr(error, "message", ""))
    body = error.body
    if isinstance(body, (bytes, str)):
        text = body if isinstance(body, str) else body.decode("utf-8", "replace")
        try:
            body = json.loads(text)
        except ValueError:
            return text
    while isinstance(body, Mapping):
        body = body.get("error", body.get("message", ""))
    return body if isinstance(body, str) else ""


def _status(error: ModelAPIError) -> str:
    return f" (status {error.status_code})" if isinstance(error, ModelHTTPError) else ""


def _authentication(error: ModelAuthenticationError, choice: ModelChoice, said: str) -> str:
    # Forbidden is also what a good key may not ask, or from where: the reason is then in the server's own words.
    why = said if isinstance(error, ModelHTTPError) and error.status_code == FORBIDDEN else "."
    if choice.base_url is not None or choice.api_key is not None:
        where = "its api_key in the configuration (or TAKEBACK_AGENT__API_KEY_FILE)"
    else:
        where = f"the variable {PROVIDERS[choice.provider].variables[0]} that the gateway was started with"
    return (
        f"The server of the model {choice.shown} refuses the key{_status(error)}{why} Set {where}, "
        "then start the gateway again."
    )


def _rate(error: ModelRateLimitError, choice: ModelChoice, said: str) -> str:
    wait = f" It asks to wait {error.retry_after:.0f} s." if error.retry_after else ""
    return f"The model {choice.shown} is asked too often just now{said}{wait} {AGAIN}"


def _connection(error: ModelConnectionError, choice: ModelChoice, _said: str) -> str:
    if error.phase == "connect":
        return (
            f"The server of the model {choice.shown} cannot be reached ({_cause(error)}). Look whether it runs, "
            f"and at base_url and the network. {AGAIN}"
        )
    return f"The connection to the model {choice.shown} broke off ({_cause(error)}). {AGAIN}"


def _cause(error: ModelConnectionError) -> str:
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    return one_line(str(cause) or type(cause).__name__, 100)


def _rejected(error: ModelRequestRejectedError, choice: ModelChoice, said: str) -> str:
    return (
        f"The model {choice.shown} does not take the request{_status(error)}{said} "
        "/model shows what else there is; /new begins anew."
    )


def _server(error: ModelAPIError, choice: ModelChoice, said: str) -> str:
    return f"The server of the model {choice.shown} fails{_status(error)}{said} {AGAIN}"


SENTENCES: dict[type[Exception], Callable[..., str]] = {
    ModelAuthenticationError: _authentication,
    ModelNotFoundError: lambda error, choice, said: (
        f"There is no model {choice.name} at its server{_status(error)}{said} "
        "Correct agent.model in the configuration; /model shows what else there is."
    ),
    ModelQuotaExceededError: lambda _error, choice, said: (
        f"The account for the model {choice.shown} has nothing left to spend{said} "
        "Look at its plan and billing; /model shows what else there is."
    ),
    ModelRateLimitError: _rate,
    ModelOverloadedError: lambda error, choice, _said: (
        f"The server of the model {choice.shown} is overloaded{_status(error)}. {AGAIN}"
    ),
    ModelUnavailableError: _server,
    ModelServerError: _server,
    ModelContextWindowExceededError: lambda _error, choice, _said: (
        f"The conversation is too long for the model {choice.shown}, also after it was summed up. "
        "/new begins anew; a lower agent.history_characters sums up earlier."
    ),
    ModelRequestRejectedError: _rejected,
    ModelTimeoutError: lambda _error, choice, _said: f"The model {choice.shown} did not answer in time. {AGAIN}",
    ModelConnectionError: _connection,
    ModelAPIError: lambda _error, choice, said: (
        f"The server of the model {choice.shown} answered what cannot be read{said} {AGAIN}"
    ),
    ContentFilterError: lambda _error, choice, _said: refusal(choice),
    UnexpectedModelBehavior: lambda _error, choice, said: (
        f"The model {choice.shown} answered what cannot be understood{said} {AGAIN}"
    ),
}
"""The table; each function takes an error of its class, the model that was asked, and what was said itself."""


def refusal(choice: ModelChoice) -> str:
    """What is said where a model or its server declines to answer."""
    return (
        f"The model {choice.shown} declines to answer this (content filter). "
        "Say it in other words, or switch: /model shows what else there is."
    )


def cut_by_filter(choice: ModelChoice) -> str:
    """What is said below an answer that a model or its server broke off."""
    return (
        f"Cut off: the content filter of the model {choice.shown} ended the answer here. "
        "Say it in other words, or switch: /model shows what else there is."
    )
