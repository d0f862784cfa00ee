import asyncio
from datetime import timedelta

import pytest
from aiohttp import web
from conftest import problem
from temporalio.client import TLSConfig
from temporalio.common import RawValue
from temporalio.converter import DataConverter
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import ActivityEnvironment

from holdfast_worker import RunnerApi, Settings, Worker
from holdfast_worker.api import ApiError

SETTINGS = Settings(url="http://127.0.0.1:1", token="hfw_test", pool="lab")


def declare(worker: Worker, summary: str = "s"):
    @worker.job_type("lab.one", summary=summary, payload={"type": "object"}, timeout_seconds=5)
    async def one(_job) -> None: ...

    return worker.types["lab.one"]


def test_a_type_is_announced_with_the_names_of_the_api():
    assert declare(Worker(SETTINGS)).definition == {
        "name": "lab.one",
        "summary": "s",
        "pool": "lab",
        "payload": {"type": "object"},
        "timeoutSeconds": 5,
    }


def test_the_digest_is_that_of_definition_and_code(monkeypatch):
    first = declare(Worker(SETTINGS))
    assert first.digest == declare(Worker(SETTINGS)).digest
    assert first.digest != declare(Worker(SETTINGS), summary="other").digest
    monkeypatch.setattr("pathlib.Path.read_bytes", lambda _path: b"other code")
    assert first.digest != declare(Worker(SETTINGS)).digest


def test_settings_are_read_from_the_variables_of_runners(tmp_path):
    (tmp_path / "token").write_text("hfw_file\n")
    env = {
        "HOLDFAST_URL": "https://h.example",
        "HOLDFAST_RUNNER_TOKEN_FILE": str(tmp_path / "token"),
    }
    settings = Settings.from_env({**env, "HOLDFAST_RUNNER_POOL": "ams", "TEMPORAL_TLS": "true"})
    assert (settings.token, settings.pool, settings.temporal_tls) == ("hfw_file", "ams", True)
    (tmp_path / "ca.pem").write_bytes(b"authority")
    tls = {"TEMPORAL_TLS_SERVER_CA_CERT_PATH": str(tmp_path / "ca.pem")}
    config = Settings.from_env({**env, **tls}).temporal_tls
    assert isinstance(config, TLSConfig) and config.server_root_ca_cert == b"authority"
    with pytest.raises(SystemExit):
        Settings.from_env({})


async def test_a_refused_announcement_ends_the_worker_with_its_reason(fake):
    async def refuse(_request):
        return problem(413, "body_too_large")

    fake.announce = refuse
    worker = Worker(Settings(url=fake.url, token="hfw_test"))
    declare(worker)
    with pytest.raises(SystemExit, match="announcement of 1 types: 413 body_too_large"):
        await worker.run(asyncio.Event())


async def test_a_worker_that_must_announce_itself_again_outlives_an_api_that_is_away(fake):
    away = web.Response(status=404, text="<html>", content_type="text/html")
    answers = [problem(404, "unknown_runner"), away, problem(503, "unavailable")]
    seen = asyncio.Event()

    async def alive(_request):
        if answers:
            return answers.pop(0)
        seen.set()
        return web.json_response({"types": []})

    async def announce(_request):
        return problem(503, "unavailable")

    fake.alive, fake.announce = alive, announce
    worker = Worker(Settings(url=fake.url, token="hfw_test"))
    worker.announce_seconds = 0
    stop = asyncio.Event()
    async with RunnerApi(fake.url, "hfw_test", "runner-of-the-test") as api:
        reporting = asyncio.create_task(worker._report(api, 0.01, stop))
        async with asyncio.timeout(10):
            await seen.wait()
        stop.set()
        await reporting


class LostTemporal:
    """A client of Temporal that answers as a test says."""

    def __init__(self, *answers: bool) -> None:
        self.answers = [*answers]
        self.workflow_service = self

    async def get_system_info(self, _request, *, timeout):
        assert timeout.total_seconds() < 10
        if not self.answers.pop(0):
            raise RPCError("away", RPCStatusCode.UNAVAILABLE, b"")


async def test_a_worker_that_has_lost_temporal_says_so_once_and_in_its_reports(fake, caplog):
    sent = []

    async def alive(request):
        sent.append((await request.json()).get("reachesTemporal", True))
        return web.json_response({"types": []})

    fake.alive = alive
    worker = Worker(Settings(url=fake.url, token="hfw_test"))
    worker._client = LostTemporal(True, False, True, False, False, False, True)
    caplog.set_level("INFO", logger="holdfast")
    async with RunnerApi(fake.url, "hfw_test", "runner-of-the-test") as api:
        for _ in range(7):
            await worker._report_once(api)
    assert sent == [True, True, True, True, False, False, True]
    said = [each.message for each in caplog.records if "reach" in each.message]
    assert said == [
        "The worker takes no jobs: it does not reach Temporal: away",
        "The worker reaches Temporal again",
    ]


@pytest.mark.parametrize("answer", [problem(403, "permission_denied"), web.Response(status=502)])
async def test_a_worker_stops_in_order_when_holdfast_does_not_hear_of_it(fake, answer):
    async def leave(_request):
        return answer

    fake.leave = leave
    async with RunnerApi(fake.url, "hfw_test", "runner-of-the-test") as api:
        await Worker(SETTINGS)._leave(api)


async def test_a_token_that_is_refused_is_read_again(fake, tmp_path):
    used = []

    async def alive(request):
        used.append(request.headers["authorization"])
        is_new = used[-1] == "Bearer hfw_new-new-new-new-new"
        return web.json_response({"types": []}) if is_new else problem(401, "token_invalid")

    fake.alive = alive
    file = tmp_path / "token"
    file.write_text("hfw_old-old-old-old-old\n")
    settings = Settings.from_env(
        {"HOLDFAST_URL": fake.url, "HOLDFAST_RUNNER_TOKEN_FILE": str(file)}
    )
    async with RunnerApi(settings.url, settings.token, "one", settings.current_token) as api:
        for text in ["hfw_old-old-old-old-old", "half of a"]:
            file.write_text(text)
            with pytest.raises(ApiError, match="token_invalid"):
                await api.post("/alive", {})
        assert len(used) == 2
        file.write_text("hfw_new-new-new-new-new\n")
        assert await api.post("/alive", {}) == {"types": []}
    assert used[2:] == ["Bearer hfw_old-old-old-old-old", "Bearer hfw_new-new-new-new-new"]


def activity_of(kind: str, api: RunnerApi, fake):
    """An activity as Temporal has it, and its arguments."""
    worker = Worker(Settings(url=fake.url, token="hfw_test"))

    @worker.job_type("lab.one", summary="s", payload={"type": "object"})
    async def one(_job) -> None: ...

    if kind == "own":
        return worker._activity(api, worker.types["lab.one"]), {"jobId": "job_1"}
    start = RawValue(DataConverter.default.payload_converter.to_payload({"jobId": "job_1"}))
    return worker._other_activity(api), [start]


@pytest.mark.parametrize("kind", ["own", "other"])
@pytest.mark.parametrize("answer", [{"text": "of the answer"}, {"outcome": "wait", "text": "x"}])
async def test_an_unexpected_error_outside_of_the_work_leaves_a_code_in_temporal(
    fake, kind, answer
):
    fake.begin = answer
    async with RunnerApi(fake.url, "hfw_test", "runner-of-the-test") as api:
        body, start = activity_of(kind, api, fake)
        with pytest.raises(ApplicationError) as info:
            await ActivityEnvironment().run(body, start)
    error = info.value
    assert (error.type, error.message) == ("unexpected", "The attempt failed with unexpected")
    assert (error.non_retryable, error.next_retry_delay) == (False, timedelta(seconds=5))
    assert (error.__cause__, error.__suppress_context__) == (None, True)


@pytest.mark.parametrize("kind", ["own", "other"])
async def test_an_activity_of_a_job_that_has_ended_returns(fake, kind):
    fake.begin = {"outcome": "ended"}
    async with RunnerApi(fake.url, "hfw_test", "runner-of-the-test") as api:
        body, start = activity_of(kind, api, fake)
        assert await ActivityEnvironment().run(body, start) is None
