import json
import pathlib
import time

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from holdfast_worker import JobFailure, RunnerApi, Settings, Worker
from holdfast_worker.masking import MASK, Masker
from holdfast_worker.secret_fields import secret_values

SECRET = {"x-holdfast-secret": True}

# The maskers of the workers and the runner are tested with these, too.
FILE = pathlib.Path(__file__).parents[3] / "test/support/maskingVectors.json"
VECTORS = json.loads(FILE.read_text())


def named(vectors):
    return [pytest.param(each, id=each["name"]) for each in vectors]


@pytest.mark.parametrize("vector", named(VECTORS["texts"]))
def test_a_secret_is_masked_in_all_its_forms(vector):
    assert Masker(vector["secrets"]).text(vector["text"]) == vector["masked"]


@pytest.mark.parametrize("vector", named(VECTORS["payloads"]))
def test_secrets_of_a_payload_are_found(vector):
    assert sorted(secret_values(vector["schema"], vector["payload"])) == vector["secrets"]


def test_a_name_from_a_sender_cannot_hold_up_the_worker():
    patterns = {"^(.*a.*)*$": {}, "(a+)+$": SECRET, "a{99999999999}": {}, "(?=never)": {}}
    payload = {"a" * 100_000 + "!": "of-no-pattern", "aaa": "of-a-pattern", "\ud800": "unknown"}
    started = time.monotonic()
    assert secret_values({"patternProperties": patterns}, payload) == ["of-a-pattern", "unknown"]
    assert time.monotonic() - started < 2


def lines_of(count: int) -> str:
    return "\n".join(f"line/{at}+of=a:bundle" for at in range(count))


@pytest.mark.parametrize(
    "secrets",
    [[lines_of(6_000)], [f"value-{at}" for at in range(6_000)], ["p4ssword", "x" * 65_537]],
)
def test_a_masker_says_that_it_does_not_mask_a_secret(secrets):
    assert not Masker([*secrets, "the-last"]).is_complete


def test_no_secret_takes_what_another_needs():
    masker = Masker([lines_of(2_000), "p4ss/word+1"])
    assert masker.is_complete
    assert masker.text("line/1999+of=a:bundle p4ss%2Fword%2B1") == f"{MASK} {MASK}"


SCHEMA = {"type": "object", "properties": {"login": {"properties": {"password": SECRET}}}}


async def run_type(fake, work) -> None:
    """Runs the activity of a type with a secret field, as a worker does."""
    worker = Worker(Settings(url=fake.url, token="hfw_test"))
    worker.job_type("lab.login", summary="s", payload=SCHEMA)(work)
    async with RunnerApi(fake.url, "hfw_test", "runner-of-the-test") as api:
        activity = worker._activity(api, worker.types["lab.login"])
        await ActivityEnvironment().run(activity, {"jobId": "job_1"})


async def test_secret_fields_of_a_payload_leave_the_process_nowhere(fake):
    fake.begin["payload"] = {"login": {"user": "operator", "password": "hunter-2000"}}
    fails = False

    async def work(job):
        password = job.payload["login"]["password"]
        job.log.info(f"as operator with {password}", nested=[{password: password}])
        await job.progress(1, password)
        if fails:
            raise JobFailure("refused", f"refused {password}", retryable=False)
        return {"echo": [password]}

    await run_type(fake, work)
    fails = True
    fake.end_answer = {"status": "failed", "code": "refused", "retryInMs": None}
    with pytest.raises(ApplicationError):
        await run_type(fake, work)
    sent = json.dumps([fake.lines, fake.ends, fake.requests])
    assert "hunter" not in sent and "operator" in sent
    assert sent.count(MASK) >= 7


async def test_an_attempt_whose_secrets_cannot_all_be_masked_is_not_made(fake):
    fake.begin["payload"] = {"login": {"password": [f"value-{at}" for at in range(6_000)]}}
    fake.end_answer = {"status": "failed", "code": "secrets_not_maskable", "retryInMs": None}
    worked = []

    async def work(_job):
        worked.append(True)

    with pytest.raises(ApplicationError):
        await run_type(fake, work)
    assert worked == []
    failure = fake.ends[0]["failure"]
    assert (failure["code"], failure["retryable"]) == ("secrets_not_maskable", False)


async def test_an_attempt_whose_secrets_cannot_be_found_ends(fake, monkeypatch):
    def fail(*_):
        raise OverflowError("p4ssword")

    monkeypatch.setattr("holdfast_worker.attempts.secret_values", fail)
    fake.end_answer = {"status": "failed", "code": "unexpected", "retryInMs": None}

    async def work(_job):
        return {}

    with pytest.raises(ApplicationError):
        await run_type(fake, work)
    assert fake.ends[0]["failure"] == {"code": "unexpected", "message": MASK}
