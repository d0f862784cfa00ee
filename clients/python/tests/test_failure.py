from datetime import timedelta

import pytest
from aiohttp import web
from conftest import problem
from temporalio.exceptions import ApplicationError

from holdfast_worker import JobFailure, attempts


@pytest.mark.parametrize(
    ("raised", "failure"),
    [
        (
            JobFailure("HTTP-503", "Later", retryable=False),
            {"code": "http_503", "message": "HTTP-503: Later", "retryable": False},
        ),
        (
            JobFailure("", "No code"),
            {"code": "failed", "message": ": No code", "retryable": True},
        ),
        (
            JobFailure("c" * 70, "m" * 70_000),
            {
                "code": "c" * 64,
                "message": f"{'c' * 70}: {'m' * 3_928}",
                "retryable": True,
            },
        ),
        (
            JobFailure("pair", "half a pair \ud800 and \0"),
            {"code": "pair", "message": "half a pair ? and \ufffd", "retryable": True},
        ),
        (
            ValueError("half a pair \ud800"),
            {"code": "unexpected", "message": "ValueError: half a pair ?"},
        ),
    ],
)
async def test_a_failure_is_made_acceptable(fake, run, raised, failure):
    fake.end_answer = {"status": "failed", "code": failure["code"], "retryInMs": None}

    async def work(_job):
        raise raised

    with pytest.raises(ApplicationError):
        await run(work)
    assert fake.ends == [{"failure": failure}]


@pytest.mark.parametrize(
    ("seconds", "sent"),
    [
        (-1, 0),
        (float("nan"), None),
        (float("inf"), 86_400),
        (100_000, 86_400),
        (timedelta(seconds=5), None),
        (0.5, 0.5),
    ],
)
async def test_a_delay_is_made_acceptable(fake, run, seconds, sent):
    fake.end_answer = {"status": "retrying", "code": "busy", "retryInMs": 1_500}

    async def work(_job):
        raise JobFailure("busy", "Later", retry_after_seconds=seconds)

    with pytest.raises(ApplicationError):
        await run(work)
    assert fake.ends[0]["failure"].get("retryAfterSeconds") == sent


@pytest.mark.parametrize("status", [400, 413])
@pytest.mark.parametrize("retryable", [True, False])
async def test_a_failure_that_is_refused_is_replaced(fake, run, status, retryable):
    fake.before_end = lambda count: problem(status, "refused") if count == 1 else None
    fake.end_answer = {"status": "failed", "code": "unexpected", "retryInMs": None}

    async def work(_job):
        raise JobFailure("wrong", "Never", retryable=retryable)

    with pytest.raises(ApplicationError) as info:
        await run(work)
    assert fake.ends[1:] == [
        {
            "failure": {
                "code": "unexpected",
                "message": f"{status} refused: as the test says",
                "retryable": retryable,
            }
        }
    ]
    assert info.value.type == "unexpected"


SECRET = "a text of the job"


def page() -> web.Response:
    return web.Response(status=404, text=SECRET, content_type="text/html")


def refusal(status: int, code: str) -> web.Response:
    return web.json_response(
        {"code": code, "detail": SECRET}, status=status, content_type="application/problem+json"
    )


@pytest.mark.parametrize(
    ("answer", "code", "ends"),
    [
        (lambda: refusal(503, "unavailable"), "unavailable", None),
        (lambda: refusal(403, "permission_denied"), "permission_denied", 1),
        (lambda: refusal(404, "not_found"), "not_found", 1),
        (lambda: refusal(400, "invalid_request"), "invalid_request", 2),
        (page, "http_404", None),
    ],
)
async def test_temporal_gets_no_text_of_an_end_that_holdfast_does_not_take(
    fake, run, monkeypatch, answer, code, ends
):
    monkeypatch.setattr(attempts, "END_SECONDS", 0.5)
    fake.before_end = lambda _count: answer()

    async def work(_job):
        return {}

    with pytest.raises(ApplicationError) as info:
        await run(work)
    error = info.value
    assert (error.type, error.message) == (code, f"The attempt failed with {code}")
    assert error.__cause__ is None
    # What is never accepted is final; of anything else Holdfast decides whether another attempt follows.
    assert error.non_retryable == (code == "invalid_request")
    assert ends in (None, len(fake.ends))
