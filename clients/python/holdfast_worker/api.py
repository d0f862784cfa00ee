"""The runner API of Holdfast, as a client of it sees it."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import aiohttp

T = TypeVar("T")


class AttemptLost(Exception):
    """The attempt no longer counts: stop the work, and report nothing."""


class ApiError(Exception):
    """
    A response that is not a success. `status` is 0 when there was none; `retry_after` is in seconds. `is_of_proxy`: it is
    none of Holdfast, but of a proxy or a load balancer, which says nothing about the attempt or the worker.
    """

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        retry_after: float = 0.0,
        *,
        is_of_proxy: bool = False,
    ) -> None:
        super().__init__(f"{status} {code}: {detail}")
        self.status, self.code, self.retry_after = status, code, retry_after
        self.is_of_proxy = is_of_proxy

    @property
    def is_transient(self) -> bool:
        """True if the same request may succeed later. With 501, the installation lacks what it needs."""
        if self.is_of_proxy:
            return True
        is_server_error = self.status >= 500 and self.status != 501
        return self.status < 400 or is_server_error or self.status in (408, 429)

    @property
    def is_refusal(self) -> bool:
        """True for what is never accepted: it is too large, or not as its schema says."""
        return not self.is_of_proxy and self.status in (400, 413)


class RunnerApi:
    """
    Requests with the token of a runner. Use it as a context manager. `read_token` returns the token
    that counts now: if one is refused and has been replaced, the request is made once more.
    """

    def __init__(
        self,
        url: str,
        token: str,
        runner_id: str,
        read_token: Callable[[], str | None] = lambda: None,
    ) -> None:
        self.runner_id = runner_id
        self._base = url.rstrip("/") + "/api/runner"
        self._token, self._read_token = token, read_token
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> RunnerApi:
        self._session = aiohttp.ClientSession()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session:
            await self._session.close()

    async def post(
        self,
        path: str,
        body: object = None,
        *,
        data: bytes | None = None,
        query: dict[str, str] | None = None,
        attempt_token: str | None = None,
        timeout: float = 10,
    ) -> Any:
        """Sends one request. Errors: `AttemptLost`, `ApiError`."""
        headers = {
            "content-type": "application/x-ndjson" if data is not None else "application/json"
        }
        if attempt_token is not None:
            headers["attempt-token"] = attempt_token
        content = data if data is not None else to_json(body)
        sent = self._token
        try:
            return await self._send(path, content, query, headers, timeout)
        except ApiError as error:
            if error.status != 401:
                raise
            self._token = self._read_token() or self._token
            if self._token == sent:
                raise
        return await self._send(path, content, query, headers, timeout)

    async def _send(
        self,
        path: str,
        content: bytes,
        query: dict[str, str] | None,
        headers: dict[str, str],
        timeout: float,
    ) -> Any:
        assert self._session, "RunnerApi is a context manager"
        try:
            async with self._session.post(
                self._base + path,
                data=content,
                params=query,
                headers={"authorization": f"Bearer {self._token}", **headers},
                timeout=aiohttp.ClientTimeout(total=timeout),
                allow_redirects=False,
            ) as response:
                text = (await response.read()).decode(errors="replace")
                if response.status == 204:
                    return None
                if 200 <= response.status < 300:
                    return _answer(text)
                retry_after = _seconds(response.headers.get("retry-after", ""))
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise ApiError(0, "unreachable", str(error) or type(error).__name__) from error
        problem = _problem(response.content_type, text)
        if problem is None:
            code = f"http_{response.status}"
            raise ApiError(
                response.status, code, "A proxy has answered", retry_after, is_of_proxy=True
            )
        if problem["code"] == "attempt_lost":
            raise AttemptLost
        detail = str(problem.get("detail"))
        raise ApiError(response.status, problem["code"], detail, retry_after)

    async def post_within(self, seconds: float, path: str, body: object, **more: Any) -> Any:
        """As `post`, repeated until the time limit while the API cannot be reached. Only for what may be repeated."""
        return await repeat_within(seconds, lambda: self.post(path, body, **more))


async def repeat_within(seconds: float, call: Callable[[], Awaitable[T]]) -> T:
    """Repeats a call until the time limit while it fails with a transient `ApiError`, with growing pauses."""
    end = asyncio.get_running_loop().time() + seconds
    delay = 0.2
    while True:
        try:
            return await call()
        except ApiError as error:
            left = end - asyncio.get_running_loop().time()
            pause = max(delay * (0.5 + random.random()), error.retry_after)
            if not error.is_transient or pause > left:
                raise
        await asyncio.sleep(pause)
        delay = min(delay * 2, 5)


def _seconds(text: str) -> float:
    """`Retry-After` in seconds; 0 for a date, which Holdfast does not send, and for what is no number."""
    return float(text) if text.isascii() and text.isdigit() else 0.0


def _answer(text: str) -> Any:
    """The answer to a request. Error: `ApiError`, for what is none of Holdfast, such as a page of a proxy."""
    try:
        return json.loads(text)
    except ValueError:
        raise ApiError(0, "unreachable", "The answer is not JSON") from None


def to_json(value: object, *, errors: str = "replace") -> bytes:
    """
    In UTF-8, which is shorter than escapes. Half of a surrogate pair becomes a question mark, or with `strict` it is a
    `ValueError`, as what JSON does not have always is.
    """
    return json.dumps(value, allow_nan=False, ensure_ascii=False).encode(errors=errors)


def _problem(content_type: str, text: str) -> dict[str, Any] | None:
    """A problem of Holdfast: a document with a code. None for other answers, such as a page of a proxy."""
    if content_type != "application/problem+json":
        return None
    try:
        problem = json.loads(text)
    except ValueError:
        return None
    is_problem = isinstance(problem, dict) and isinstance(problem.get("code"), str)
    return problem if is_problem else None
