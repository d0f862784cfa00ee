from datetime import timedelta

import pytest
from conftest import problem
from temporalio.exceptions import ApplicationError

from holdfast_worker import JobFailure


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
