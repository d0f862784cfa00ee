import asyncio
from fractions import Fraction

import pytest
from aiohttp import web
from conftest import problem

from holdfast_worker import RunnerApi
from holdfast_worker.api import ApiError


def page(**more) -> web.Response:
    return web.Response(text="<html>We are working on it</html>", content_type="text/html", **more)


def redirect() -> web.Response:
    return web.Response(status=302, headers={"location": "/login"})


def foreign_refusals():
    """What no proxy can say for Holdfast: a page, JSON that is no problem, and a problem without a code."""
    for status in (400, 401, 403, 404, 409, 413):
        yield lambda status=status: page(status=status)
        yield lambda status=status: web.json_response({"code": "attempt_lost"}, status=status)
        yield lambda status=status: web.json_response(
            {"title": "No"}, status=status, content_type="application/problem+json"
        )


PAGES = [page, redirect, web.Response, *foreign_refusals()]


@pytest.mark.parametrize("answer", [*PAGES, lambda: web.Response(body=b"\xff\xfe")])
async def test_a_page_of_a_proxy_is_no_answer_of_holdfast(fake, run, answer):
    """The lines, the end and whether the job is to be cancelled are asked for again."""
    fake.before_lines = lambda count: answer() if count == 1 else None
    fake.before_end = lambda count: answer() if count == 1 else None

    async def work(job):
        job.log.info("first")

    await run(work)
    assert [line["message"] for line in fake.lines] == ["first"]
    assert fake.ends == [{"result": {}}] * 2


@pytest.mark.parametrize(
    ("status", "is_of_proxy", "is_transient"),
    [
        *((status, False, True) for status in (0, 408, 429, 500, 502, 503, 504)),
        *((status, False, False) for status in (400, 401, 403, 404, 409, 413, 422, 501)),
        *((status, True, True) for status in (400, 403, 413, 501, 503)),
    ],
)
def test_what_may_succeed_later(status, is_of_proxy, is_transient):
    assert ApiError(status, "x", "y", is_of_proxy=is_of_proxy).is_transient is is_transient


async def test_reports_go_on_after_a_page_of_a_proxy(fake, run):
    fake.end_answer = {"status": "cancelled", "code": None, "retryInMs": None}

    def before_lines(count):
        fake.cancel = count > 2
        return page() if count <= 2 else None

    fake.before_lines = before_lines

    async def work(job):
        job.log.info("first")
        await asyncio.sleep(600)

    await run(work)
    assert fake.ends == [{"cancelled": True}]


@pytest.mark.parametrize("answer", PAGES)
async def test_what_is_no_answer_of_holdfast_is_transient(fake, answer):
    async def alive(_request):
        return answer()

    fake.alive = alive
    async with RunnerApi(fake.url, "hfw_test", "one") as api:
        with pytest.raises(ApiError) as info:
            await api.post("/alive", {})
    assert info.value.is_transient and not info.value.is_refusal


async def test_a_401_of_a_proxy_lets_the_token_be_read_again(fake):
    tokens = []

    async def alive(request):
        tokens.append(request.headers["authorization"])
        return page(status=401) if len(tokens) == 1 else web.json_response({"types": []})

    fake.alive = alive
    async with RunnerApi(fake.url, "hfw_old", "one", lambda: "hfw_new") as api:
        await api.post("/alive", {})
    assert tokens == ["Bearer hfw_old", "Bearer hfw_new"]


@pytest.mark.parametrize(
    ("percent", "sent"),
    [(0.00005, "0.0001"), (1e-9, "0"), (Fraction(1, 3), "0.3333"), (99.5, "99.5"), (250, "100")],
)
async def test_a_progress_is_sent_in_decimal_notation(fake, run, percent, sent):
    async def work(job):
        job.log.info("first")
        await job.progress(percent)

    await run(work)
    assert [each["progress"] for each in fake.requests if "progress" in each] == [sent]


async def test_lines_are_kept_when_their_progress_is_refused(fake, run):
    on_lines = fake.on_lines

    async def refuse_progress(request):
        return problem(400, "refused") if "progress" in request.query else await on_lines(request)

    fake.on_lines = refuse_progress

    async def work(job):
        job.log.info("first")
        await job.progress(40)

    await run(work)
    assert [line["message"] for line in fake.lines] == ["first"]
    assert fake.ends == [{"result": {}}]


async def test_texts_are_sent_in_utf_8(fake, run):
    sizes = []
    on_lines = fake.on_lines

    async def note_size(request):
        sizes.append(len(await request.read()))
        return await on_lines(request)

    fake.on_lines = note_size
    text = "ошибка" * 1_000

    async def work(job):
        job.log.info(text, half="half a pair \ud800")
        return {"text": text}

    await run(work)
    assert sizes[0] < 2 * len(text) + 200
    assert fake.lines[0]["message"] == text
    assert fake.lines[0]["data"] == {"half": "half a pair ?"}
    assert fake.ends == [{"result": {"text": text}}]
