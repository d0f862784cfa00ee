import asyncio
import dataclasses
import hashlib
import json
from datetime import UTC, datetime

import pytest
from conftest import nothing, problem
from temporalio.activity import ActivityCancellationDetails
from temporalio.common import RawValue
from temporalio.converter import DataConverter
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.testing import ActivityEnvironment

from holdfast_worker import JobEnded, JobFailure, RunnerApi, Settings, Worker, attempt, attempts
from holdfast_worker.attempts import MASK


async def forever(_job) -> None:
    await asyncio.sleep(600)


async def eventually(condition) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)


async def test_lines_progress_and_result_are_sent(fake, run):
    async def work(job):
        assert (job.payload, job.tenant_id, job.number) == ({"n": 3}, "acme", 1)
        for i in range(4_500):
            job.log.info(f"line {i}", i=i)
        await job.progress(40, "almost")
        return {"n": job.payload["n"]}

    await run(work)
    token = fake.began.pop("attemptToken")
    assert len(token) >= 43
    assert fake.began == {
        "runnerId": "runner-of-the-test",
        "workflowRunId": "test-run",
        "digest": "digest",
    }
    assert [line["message"] for line in fake.lines] == [f"line {i}" for i in range(4_500)]
    assert fake.lines[7]["data"] == {"i": 7} and fake.lines[7]["level"] == "info"
    # 2,000 lines at most in a request; the progress is with the first.
    assert len(fake.requests) == 3
    assert fake.requests[0] == {"firstLine": "1", "progress": "40", "progressMessage": "almost"}
    assert fake.ends == [{"result": {"n": 3}}]


async def test_lines_are_sent_again_after_a_lost_answer_and_each_counts_once(fake, run):
    fake.before_lines = lambda count: problem(503, "unavailable") if count == 1 else None
    fake.after_lines = lambda count: problem(502, "bad_gateway") if count in (2, 3) else None

    async def work(job):
        for i in range(3):
            job.log.warn(f"line {i}")
            await eventually(lambda: len(fake.requests) > i + 1)

    await run(work)
    assert [line["message"] for line in fake.lines] == ["line 0", "line 1", "line 2"]
    assert fake.ends == [{"result": {}}]


async def test_too_many_lines_are_counted_instead_of_kept(fake, run, monkeypatch):
    monkeypatch.setattr("holdfast_worker.attempts.MAX_WAITING_LINES", 10)

    async def work(job):
        for i in range(25):
            job.log.debug(str(i))

    await run(work)
    messages = [line["message"] for line in fake.lines]
    assert messages[:10] == [str(i) for i in range(10)]
    assert messages[10:] == ["15 lines were left out: they came too fast"]


@pytest.mark.parametrize(
    ("raised", "failure"),
    [
        (
            JobFailure("busy", "Later", retry_after_seconds=5),
            {"code": "busy", "message": "Later", "retryable": True, "retryAfterSeconds": 5},
        ),
        (
            JobFailure("wrong", "Never", retryable=False),
            {"code": "wrong", "message": "Never", "retryable": False},
        ),
        (KeyError("x"), {"code": "unexpected", "message": "KeyError: 'x'"}),
    ],
)
async def test_a_failure_is_reported_and_temporal_hears_when_to_try_again(
    fake, run, raised, failure
):
    fake.end_answer = {"status": "retrying", "code": failure["code"], "retryInMs": 1_500}

    async def work(_job):
        raise raised

    with pytest.raises(ApplicationError) as info:
        await run(work)
    assert fake.ends == [{"failure": failure}]
    error = info.value
    assert (error.type, error.non_retryable) == (failure["code"], False)
    assert error.next_retry_delay.total_seconds() == 1.5
    assert error.category == ApplicationErrorCategory.BENIGN
    # Temporal keeps no text of the job.
    assert str(error) == f"{failure['code']}: The attempt failed with {failure['code']}"


async def test_the_last_failure_is_not_retried(fake, run):
    fake.end_answer = {"status": "failed", "code": "wrong", "retryInMs": None}

    async def work(_job):
        raise JobFailure("wrong", "Never")

    with pytest.raises(ApplicationError) as info:
        await run(work)
    assert info.value.non_retryable


async def test_lines_for_which_the_log_has_no_space_are_counted_at_the_end(fake, run):
    fake.begin["remainingLines"] = 3

    async def work(job):
        for number in range(5):
            job.log.info(f"line {number}")

    await run(work)
    assert len(fake.lines) == 3
    assert fake.ends == [{"result": {}, "droppedLines": 2}]


@pytest.mark.parametrize(
    ("answer", "code", "delay"),
    [
        ({"outcome": "wait", "code": "leased", "retryInMs": 250}, "leased", 0.25),
        ({"outcome": "failed", "code": "worker_lost"}, "worker_lost", None),
    ],
)
async def test_what_cannot_begin_fails_as_the_api_says(fake, run, answer, code, delay):
    fake.begin = answer
    with pytest.raises(ApplicationError) as info:
        await run(forever)
    error = info.value
    assert (error.type, error.non_retryable) == (code, delay is None)
    assert (error.next_retry_delay and error.next_retry_delay.total_seconds()) == delay
    assert fake.ends == []


async def test_a_job_of_another_worker_is_left_with_an_answer_of_holdfast(fake):
    fake.begin = {"outcome": "wait", "code": "not_announced", "retryInMs": 1_000}
    start = RawValue(DataConverter.default.payload_converter.to_payload({"jobId": "job_1"}))
    async with RunnerApi(fake.url, "hfw_test", "runner-of-the-test") as api:
        other = Worker(Settings(url=fake.url, token="hfw_test"))._other_activity(api)
        with pytest.raises(ApplicationError) as info:
            await ActivityEnvironment().run(other, [start])
    assert (info.value.type, info.value.next_retry_delay.total_seconds()) == ("not_announced", 1)
    # Without the digest of a type, Holdfast lets the job release its slot.
    assert "digest" not in fake.began


async def test_of_a_job_that_has_ended_nothing_is_done(fake, run):
    fake.begin = {"outcome": "ended"}
    with pytest.raises(JobEnded):
        await run(forever)
    assert fake.ends == []


async def test_a_cancellation_that_holdfast_reports_stops_the_work(fake, run):
    fake.cancel = True
    fake.end_answer = {"status": "cancelled", "code": None, "retryInMs": None}
    cleaned = []

    async def work(job):
        job.log.info("starts")
        try:
            await forever(job)
        finally:
            job.log.info("cleans up")
            cleaned.append(True)

    await run(work)
    assert (cleaned, fake.ends) == ([True], [{"cancelled": True}])
    assert [line["message"] for line in fake.lines] == ["starts", "cleans up"]


async def test_a_cancellation_by_temporal_stops_the_work_and_is_reported_before_the_activity_ends(
    fake, run
):
    fake.end_answer = {"status": "cancelled", "code": None, "retryInMs": None}
    environment = ActivityEnvironment()

    async def work(job):
        asyncio.get_running_loop().call_soon(environment.cancel)
        await forever(job)

    with pytest.raises(asyncio.CancelledError):
        await run(work, environment)
    assert fake.ends == [{"cancelled": True}]


DROPPED = [
    ActivityCancellationDetails(**{reason: True})
    for reason in ("not_found", "timed_out", "paused", "reset")
]


@pytest.mark.parametrize("details", DROPPED)
async def test_an_activity_that_temporal_has_dropped_does_its_work(fake, run, details):
    environment = ActivityEnvironment()

    async def work(job):
        environment.cancel(details)
        await asyncio.sleep(0.1)
        return {"n": 1}

    await run(work, environment)
    assert fake.ends == [{"result": {"n": 1}}]


async def test_a_cancellation_of_the_job_stops_work_that_temporal_has_dropped(fake, run):
    fake.end_answer = {"status": "cancelled", "code": None, "retryInMs": None}
    environment = ActivityEnvironment()

    async def work(job):
        environment.cancel(DROPPED[0])
        await asyncio.sleep(0.05)
        fake.cancel = True
        job.log.info("continues")
        await forever(job)

    await run(work, environment)
    assert fake.ends == [{"cancelled": True}]


async def test_a_worker_that_stops_interrupts_work_that_temporal_has_dropped(fake, run):
    fake.end_answer = {"status": "retrying", "code": "interrupted", "retryInMs": 0}
    environment = ActivityEnvironment()

    async def work(job):
        environment.cancel(DROPPED[0])
        await asyncio.sleep(0.05)
        environment.worker_shutdown()
        await forever(job)

    with pytest.raises(ApplicationError):
        await run(work, environment)
    assert fake.ends[0]["failure"]["code"] == "interrupted"


async def test_work_of_a_dropped_activity_without_a_task_of_its_own_is_interrupted(fake):
    environment = ActivityEnvironment()
    async with RunnerApi(fake.url, "hfw_test", "runner-of-the-test") as api:

        async def run_activity():
            async with attempt(api, "job_1", "digest"):
                environment.cancel(DROPPED[0])
                await asyncio.sleep(600)

        with pytest.raises(asyncio.CancelledError):
            await environment.run(run_activity)
    assert fake.ends[0]["failure"]["code"] == "interrupted"


async def test_a_worker_that_stops_interrupts_the_attempt(fake, run):
    fake.end_answer = {"status": "retrying", "code": "interrupted", "retryInMs": 0}
    environment = ActivityEnvironment()

    async def work(job):
        environment.worker_shutdown()
        environment.cancel()
        await forever(job)

    with pytest.raises(ApplicationError):
        await run(work, environment)
    assert fake.ends[0]["failure"]["code"] == "interrupted"


@pytest.mark.parametrize(
    ("is_shutdown", "end"),
    [
        (True, {"failure": {"code": "interrupted", "message": "The worker stopped"}}),
        (False, {"cancelled": True}),
    ],
)
async def test_an_attempt_that_begins_while_the_activity_is_cancelled_is_ended(
    fake, run, is_shutdown, end
):
    environment = ActivityEnvironment()
    worked = []

    async def before_begin(_count):
        if is_shutdown:
            environment.worker_shutdown()
        environment.cancel()
        await asyncio.sleep(0.2)

    async def work(_job):
        worked.append(True)

    fake.before_begin = before_begin
    with pytest.raises(asyncio.CancelledError):
        await run(work, environment)
    assert (fake.ends, worked) == ([end], [])


async def test_a_beginning_without_an_answer_is_named_when_the_worker_stops(fake, run, monkeypatch):
    monkeypatch.setattr(attempts, "STOPPED_BEGIN_SECONDS", 0.3)
    environment = ActivityEnvironment()
    heartbeats = []
    environment.on_heartbeat = lambda *details: heartbeats.append(details)

    async def before_begin(_count):
        environment.worker_shutdown()
        environment.cancel()
        await asyncio.sleep(0.1)
        # A second cancellation changes nothing.
        environment.cancel()
        await asyncio.sleep(5)

    fake.before_begin = before_begin
    with pytest.raises(asyncio.CancelledError):
        await run(forever, environment)
    token = hashlib.sha256(fake.began["attemptToken"].encode()).hexdigest()
    assert heartbeats[-1] == ({"unanswered": [token]},)
    assert fake.ends == []


async def test_the_next_activity_names_a_beginning_that_had_no_answer(fake, run, monkeypatch):
    monkeypatch.setattr(attempts, "BEGIN_SECONDS", 0.3)

    async def unavailable(_count):
        return problem(503, "unavailable")

    fake.before_begin = unavailable
    environment = ActivityEnvironment()
    heartbeats = []
    environment.on_heartbeat = lambda *details: heartbeats.append(details)
    with pytest.raises(ApplicationError) as info:
        await run(forever, environment)
    assert (info.value.type, info.value.next_retry_delay.total_seconds()) == ("unavailable", 5)
    # They also keep the activity while it waits, and repeat what an earlier one has said.
    assert heartbeats[0] == ()
    (details,) = heartbeats[-1]
    assert details == {
        "unanswered": [hashlib.sha256(fake.began["attemptToken"].encode()).hexdigest()]
    }

    async def work(job):
        await asyncio.sleep(0.05)

    fake.before_begin = nothing
    again = ActivityEnvironment()
    again.info = dataclasses.replace(again.info, heartbeat_details=[details])
    again.on_heartbeat = lambda *details: heartbeats.append(details)
    await run(work, again)
    assert fake.began["unanswered"] == details["unanswered"]
    assert heartbeats[-1] == (details,)


async def test_the_last_lines_are_sent_again_and_wait_as_long_as_holdfast_says(fake, run):
    times = []

    def refuse_once(_count):
        times.append(asyncio.get_running_loop().time())
        if len(times) == 1:
            answer = problem(503, "unavailable")
            answer.headers["retry-after"] = "1"
            return answer
        return None

    fake.before_lines = refuse_once

    async def work(job):
        job.log.info("the last")

    await run(work)
    assert [each["message"] for each in fake.lines] == ["the last"]
    assert times[1] - times[0] > 0.95


async def test_lines_are_sent_again_with_growing_pauses(fake, run):
    fake.before_lines = lambda _count: problem(503, "unavailable")

    async def work(job):
        job.log.info("one")
        await asyncio.sleep(2)
        fake.before_lines = lambda _count: None

    await run(work)
    # Every quarter of a second it would be eight times.
    assert 3 <= len(fake.requests) <= 6


async def test_a_lost_attempt_stops_and_reports_nothing_more(fake, run):
    fake.before_lines = lambda _count: problem(409, "attempt_lost")

    async def work(job):
        job.log.info("too late")
        await forever(job)

    with pytest.raises(ApplicationError) as info:
        await run(work)
    assert (info.value.type, fake.ends) == ("attempt_lost", [])
    assert_another_may_follow(info.value)


async def test_after_an_end_that_comes_too_late_another_attempt_may_follow(fake, run):
    fake.before_end = lambda _count: problem(409, "attempt_lost")

    async def work(_job):
        return {}

    with pytest.raises(ApplicationError) as info:
        await run(work)
    assert info.value.type == "attempt_lost"
    assert_another_may_follow(info.value)


def assert_another_may_follow(error: ApplicationError) -> None:
    """The next request to begin learns from Holdfast whether an attempt is left: a final failure would end the job."""
    assert not error.non_retryable
    assert error.next_retry_delay.total_seconds() == 5


async def test_without_an_answer_the_work_stops_before_its_lease_ends(fake, run):
    fake.begin["leaseMs"] = 600
    fake.before_lines = lambda _count: problem(503, "unavailable")
    loop = asyncio.get_running_loop()
    started = loop.time()
    stopped = []

    async def work(job):
        try:
            await forever(job)
        finally:
            stopped.append(loop.time() - started)

    with pytest.raises(ApplicationError) as info:
        await run(work)
    assert (info.value.type, fake.ends) == ("attempt_lost", [])
    assert_another_may_follow(info.value)
    # Long before the time of a test that has failed.
    assert stopped[0] < 10


@pytest.mark.parametrize("number", [1, 3])
async def test_the_last_attempt_goes_on_without_an_answer_and_reports_late(fake, run, number):
    fake.begin.update(leaseMs=200, attempt=number, maxAttempts=number)
    fake.before_lines = lambda count: problem(503, "unavailable") if count < 5 else None

    async def work(job):
        await eventually(lambda: len(fake.requests) >= 5)
        return {"late": True}

    await run(work)
    assert fake.ends == [{"result": {"late": True}}]


async def test_the_lease_is_kept_without_lines(fake, run):
    fake.begin["leaseMs"] = 800

    async def work(_job):
        await eventually(lambda: len(fake.requests) >= 3)

    await run(work)
    assert fake.lines == []


async def test_an_attempt_has_a_limit(fake, run):
    fake.begin["timeoutMs"] = 100
    fake.end_answer = {"status": "failed", "code": "timed_out", "retryInMs": None}
    with pytest.raises(ApplicationError):
        await run(forever)
    assert fake.ends[0]["failure"]["code"] == "timed_out"


async def test_the_end_is_repeated_until_it_is_answered(fake, run):
    fake.before_end = lambda count: problem(503, "unavailable") if count < 3 else None

    async def work(_job):
        return {"n": 1}

    await run(work)
    assert fake.ends == [{"result": {"n": 1}}] * 3


async def test_a_result_that_is_refused_fails_the_attempt(fake, run):
    fake.before_end = lambda count: problem(400, "invalid_request") if count == 1 else None
    fake.end_answer = {"status": "failed", "code": "invalid_result", "retryInMs": None}

    async def work(_job):
        return {"n": 1}

    with pytest.raises(ApplicationError):
        await run(work)
    assert fake.ends[1]["failure"]["code"] == "invalid_result"


async def test_secrets_leave_the_process_nowhere(fake, run):
    fake.end_answer = {"status": "failed", "code": "x", "retryInMs": None}

    async def work(job):
        secret = job.secrets["API_TOKEN"]
        job.log.info(f"with {secret}", nested=[{"deep": secret}])
        await job.progress(1, secret)
        if "raise" in job.payload:
            raise JobFailure("x", f"refused {secret}")
        return {"echo": secret}

    await run_ignoring_failure(run, work)
    fake.begin["payload"] = {"raise": True}
    await run_ignoring_failure(run, work)
    sent = json.dumps([fake.lines, fake.ends, fake.requests])
    assert "4711" not in sent and sent.count("********") >= 6


def refuse_what_is_no_json(fake) -> None:
    """As Holdfast: `NaN` is no JSON."""

    def check(constant):
        raise ValueError(constant)

    on_lines = fake.on_lines

    async def strict(request):
        for line in (await request.text()).splitlines():
            try:
                json.loads(line, parse_constant=check)
            except ValueError:
                return problem(400, "invalid_request")
        return await on_lines(request)

    fake.on_lines = strict


async def test_data_that_is_no_json_keeps_no_line_from_being_sent(fake, run):
    refuse_what_is_no_json(fake)
    circle: dict[str, object] = {}
    circle["self"] = circle
    moment = datetime(2026, 1, 2, tzinfo=UTC)

    async def work(job):
        job.log.info("numbers", values=[float("nan"), float("inf"), -float("inf"), 1.5], at=moment)
        job.log.info("keys", map={1: "a", None: "b", moment: "c"})
        job.log.info("circle", circle=circle)
        job.log.info("last")
        await job.progress(float("nan"), "half a pair \ud800 and \0")

    await run(work)
    assert [line["message"] for line in fake.lines] == ["numbers", "keys", "circle", "last"]
    numbers, keys, left_out, _ = fake.lines
    assert numbers["data"] == {"values": ["nan", "inf", "-inf", 1.5], "at": str(moment)}
    assert keys["data"] == {"map": {"1": "a", "null": "b", str(moment): "c"}}
    assert left_out["data"] == {"leftOut": "no JSON: RecursionError"}
    assert fake.ends == [{"result": {}}]


@pytest.mark.parametrize("status", [400, 413])
async def test_lines_that_are_refused_are_dropped_and_the_others_follow(fake, run, status):
    fake.before_lines = lambda count: problem(status, "refused") if count == 1 else None

    async def work(job):
        job.log.info("refused")
        await eventually(lambda: len(fake.requests) > 0)
        job.log.info("accepted")

    await run(work)
    assert [line["message"] for line in fake.lines] == ["accepted"]
    assert fake.ends == [{"result": {}, "droppedLines": 1}]


async def test_a_secret_of_digits_is_masked_as_a_text_and_as_a_whole_number(fake, run):
    fake.begin["secrets"] = {"PIN": "471147"}
    result = {
        "pin": 471147,
        "port": 94711479,
        "ratio": 0.4711471,
        "text": "pin 471147",
        "471147": 1,
    }

    async def work(job):
        job.log.info("with numbers", **{"pin": 471147, "port": 94711479})
        return result

    await run(work)
    assert fake.lines[0]["data"] == {"pin": MASK, "port": 94711479}
    masked = {"pin": MASK, "port": 94711479, "ratio": 0.4711471, "text": f"pin {MASK}", MASK: 1}
    assert fake.ends == [{"result": masked}]


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ({"ratio": float("nan")}, "nan of the type float"),
        ({"half": "\udfff"}, "surrogates not allowed"),
    ],
)
async def test_a_result_that_is_no_json_fails_the_attempt(fake, run, result, message):
    fake.end_answer = {"status": "failed", "code": "invalid_result", "retryInMs": None}

    async def work(_job):
        return result

    await run_ignoring_failure(run, work)
    assert fake.ends[0]["failure"]["code"] == "invalid_result"
    assert message in fake.ends[0]["failure"]["message"]


async def run_ignoring_failure(run, work) -> None:
    with pytest.raises(ApplicationError):
        await run(work)


async def test_a_cancellation_during_the_report_of_the_end_does_not_interrupt_it(fake, run):
    environment = ActivityEnvironment()

    def cancel_and_fail_once(count):
        environment.cancel()
        return problem(503, "unavailable") if count == 1 else None

    fake.before_end = cancel_and_fail_once

    async def work(_job):
        return {"n": 1}

    await run(work, environment)
    assert fake.ends == [{"result": {"n": 1}}] * 2
