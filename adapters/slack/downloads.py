"""Files that people send: fetched from Slack, with the app's token, when they are wanted."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any

import aiohttp

from adapters.contract import SendFailed
from adapters.slack.client import CALL_S, REFUSALS, SEND_AGAIN_S, Client, send_failure

Body = Mapping[str, Any]


class Downloads:
    """Fetches as one app."""

    def __init__(self, client: Client) -> None:
        self._web = client.web

    def of(self, file: Body, name: str) -> Callable[[], Awaitable[bytes]]:
        """Say how a file is fetched that came with a message."""
        return partial(self._fetch, file, name)

    async def _fetch(self, file: Body, name: str) -> bytes:
        try:
            if file.get("file_access") == "check_file_info":
                # A file of another team's: only now is it said where it is.
                file = (await self._web.files_info(file=str(file["id"])))["file"]
            # What is kept elsewhere must not be asked for with the app's token.
            url = None if file.get("is_external") else file.get("url_private_download") or file.get("url_private")
            if not url:
                raise SendFailed(f"{name} is not kept by Slack; send it as a file", retry_after_s=None)
            return await self._content(str(url), name, file)
        except (aiohttp.ClientError, TimeoutError) as error:
            lost = f"{name} was lost on its way from Slack ({type(error).__name__})"
            raise SendFailed(lost, retry_after_s=SEND_AGAIN_S) from None
        except REFUSALS as error:
            raise send_failure(error) from None

    async def _content(self, url: str, name: str, file: Body) -> bytes:
        headers = {"Authorization": f"Bearer {self._web.token}"}
        content = bytearray()
        limit = file.get("size")
        timeout = aiohttp.ClientTimeout(total=CALL_S)
        async with (
            aiohttp.ClientSession(timeout=timeout, trust_env=True) as session,
            session.get(url, headers=headers) as answer,
        ):
            refused = answer.content_type == "text/html" and "html" not in str(file.get("mimetype"))
            if answer.status != HTTPStatus.OK or refused:
                raise SendFailed(f"Slack does not give {name} away; does the app have files:read?", retry_after_s=None)
            async for chunk in answer.content.iter_any():
                content += chunk
                if isinstance(limit, int) and len(content) > limit:
                    raise SendFailed(f"{name} is larger than Slack said", retry_after_s=None)
        return bytes(content)
