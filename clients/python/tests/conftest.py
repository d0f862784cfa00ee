"""A runner API for tests: it answers as the test says, and keeps what it received."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from temporalio.testing import ActivityEnvironment

from holdfast_worker import Attempt, RunnerApi, attempt

STARTED = {
    "outcome": "started",
    "attempt": 1,
    "type": "lab.test",
    "payload": {"n": 3},
    "target": None,
    "secrets": {"API_TOKEN": 'se"cret-4711'},
    "timeoutMs": 60_000,
    "leaseMs": 5_000,
    "maxAttempts": 3,
    "remainingLines": 10_000,
    "tenantId": "acme",
    "createdBy": "alice",
}

Handler = Callable[["FakeApi", dict[str, Any]], web.Response | None]


class FakeApi:
    def __init__(self) -> None:
        self.begin: dict[str, Any] = dict(STARTED)
        self.lines: list[dict[str, Any]] = []
        self.requests: list[dict[str, str]] = []
        self.ends: list[dict[str, Any]] = []
        self.end_answer: dict[str, Any] = {"status": "succeeded", "code": None, "retryInMs": None}
        self.cancel = False
        self.begins = 0
        self.before_begin: Callable[[int], Awaitable[web.Response | None]] = nothing
        self.before_lines: Callable[[int], web.Response | None] = lambda _count: None
        self.after_lines: Callable[[int], web.Response | None] = lambda _count: None
        self.announce = self.alive = self.leave = unexpected
        self.before_end: Callable[[int], web.Response | None] = lambda _count: None

    async def on_announce(self, request: web.Request) -> web.Response:
        return await self.announce(request)

    async def on_alive(self, request: web.Request) -> web.Response:
        return await self.alive(request)

    async def on_leave(self, request: web.Request) -> web.Response:
        return await self.leave(request)

    async def on_begin(self, request: web.Request) -> web.Response:
        self.began = await request.json()
        self.begins += 1
        if answer := await self.before_begin(self.begins):
            return answer
        # Kits may choose the token of the attempt, as this one does; the answer repeats it.
        return web.json_response(self.begin | {"attemptToken": self.began["attemptToken"]})

    async def lines_handler(self, request: web.Request) -> web.Response:
        return await self.on_lines(request)

    async def on_lines(self, request: web.Request) -> web.Response:
        assert request.headers["attempt-token"] == self.began["attemptToken"]
        self.requests.append(dict(request.query))
        if answer := self.before_lines(len(self.requests)):
            return answer
        first = int(request.query["firstLine"])
        assert first <= len(self.lines) + 1
        received = [json.loads(line) for line in (await request.text()).splitlines()]
        self.lines += received[len(self.lines) + 1 - first :]
        if answer := self.after_lines(len(self.requests)):
            return answer
        return web.json_response(
            {
                "have": len(self.lines),
                "cancel": self.cancel,
                "leaseMs": self.begin["leaseMs"],
                "remainingLines": max(0, self.begin["remainingLines"] - len(self.lines)),
            }
        )

    async def on_end(self, request: web.Request) -> web.Response:
        self.ends.append(await request.json())
        return self.before_end(len(self.ends)) or web.json_response(self.end_answer)


async def nothing(_count: int) -> web.Response | None:
    return None


async def unexpected(request: web.Request) -> web.Response:
    return problem(404, f"unexpected {request.path}")


def problem(status: int, code: str) -> web.Response:
    return web.json_response(
        {"code": code, "detail": "as the test says"},
        status=status,
        content_type="application/problem+json",
    )


@pytest.fixture
async def fake():
    api = FakeApi()
    app = web.Application(client_max_size=4 * 1_048_576)
    app.router.add_post("/api/runner/announce", api.on_announce)
    app.router.add_post("/api/runner/alive", api.on_alive)
    app.router.add_post("/api/runner/leave", api.on_leave)
    app.router.add_post("/api/runner/jobs/{id}/begin", api.on_begin)
    app.router.add_post("/api/runner/jobs/{id}/lines", api.lines_handler)
    app.router.add_post("/api/runner/jobs/{id}/end", api.on_end)
    async with TestServer(app) as server:
        api.url = str(server.make_url("/"))
        yield api


Work = Callable[[Attempt], Awaitable[dict[str, Any] | None]]


@pytest.fixture
async def run(fake):
    """Runs an activity with this work, in the SDK's environment of activities."""
    async with RunnerApi(fake.url, "hfw_test", "runner-of-the-test") as api:

        async def run(work: Work, environment: ActivityEnvironment | None = None) -> None:
            async def activity() -> None:
                async with attempt(api, "job_1", "digest") as job:
                    job.result = await job.run(work(job))

            async with asyncio.timeout(20):
                await (environment or ActivityEnvironment()).run(activity)

        yield run
