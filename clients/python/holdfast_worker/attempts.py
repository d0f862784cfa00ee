"""One attempt of a job: begin, log and progress with the lease, cancellation, end."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import re
import secrets
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory, FailureError

from .api import ApiError, AttemptLost, RunnerApi, repeat_within, to_json
from .masking import MASK, Masker
from .secret_fields import secret_values

MAX_LINES, MAX_BYTES = 2_000, 1_048_576
MAX_WAITING_LINES = 20_000
MAX_MESSAGE, MAX_DATA_BYTES = 8_192, 16_384
FLUSH_SECONDS = 0.25
BEGIN_SECONDS, BEGIN_AGAIN_MS = 30.0, 5_000
# What has started is waited for this long when the worker stops, to report that it was interrupted.
STOPPED_BEGIN_SECONDS = 8.0
MAX_UNANSWERED = 20
HEARTBEAT_SECONDS = 0.5
LAST_LINES_SECONDS, END_SECONDS = 30.0, 60.0
MAX_PAUSE_SECONDS = 5.0
MAX_CODE, MAX_FAILURE_MESSAGE, MAX_RETRY_AFTER_SECONDS = 64, 4_000, 86_400.0


class JobFailure(Exception):
    """An expected failure of an attempt. `code` is lower-case letters, digits and `_`."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        retryable: bool = True,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message)
        self.code, self.message = code, message
        self.retryable, self.retry_after_seconds = retryable, retry_after_seconds


class JobEnded(Exception):
    """The job has ended already: the activity has nothing to do, and returns."""


class Attempt:
    """What an attempt knows about itself, and how it reports. `result` is sent at its end."""

    def __init__(self, api: RunnerApi, job_id: str, started: dict[str, Any]) -> None:
        self.job_id = job_id
        self.number: int = started["attempt"]
        self.type: str = started["type"]
        self.payload: dict[str, Any] = started["payload"]
        self.target: dict[str, Any] | None = started.get("target")
        self.secrets: dict[str, str] = started.get("secrets") or {}
        self.tenant_id: str = started["tenantId"]
        self.created_by: str = started["createdBy"]
        self.result: dict[str, Any] | None = None
        self.log = Log(self)
        self._api, self._token = api, started["attemptToken"]
        self._lease = started["leaseMs"] / 1_000
        self._timeout = started["timeoutMs"] / 1_000
        self._is_last = self.number >= started.get("maxAttempts", math.inf)
        self._mask: Callable[[str], str] = lambda _: MASK
        self._lines: deque[bytes] = deque()
        self._have = self._left_out = 0
        self._remaining = started.get("remainingLines", math.inf)
        """Lines that the log has space for, besides those that were received."""
        self._lost_lines = 0
        self._progress: dict[str, str] = {}
        self._wake = asyncio.Event()
        self._answered = asyncio.get_running_loop().time()
        self._worker: asyncio.Task[Any] | None = asyncio.current_task()
        self._dropped = False
        self.stopped_for: str | None = None
        """Why the work was stopped: `cancelled`, `attempt_lost` or `timed_out`."""

    async def run(self, work: Awaitable[dict[str, Any] | None]) -> dict[str, Any] | None:
        """
        Does the work in a task of its own, and cancels it as the activity is cancelled. If only Temporal has dropped
        the activity, as after an outage, the work continues: its attempt is still the current one, and Holdfast
        decides with its lease when another one may begin.
        """
        task = asyncio.ensure_future(work)
        while True:
            try:
                return await asyncio.shield(task)
            except asyncio.CancelledError:
                if self._continues():
                    continue
                task.cancel()
                while not task.done():
                    try:
                        await asyncio.wait({task})
                    except asyncio.CancelledError:
                        task.cancel()
                return task.result()

    def _continues(self) -> bool:
        """True for a cancellation that is none of the job or the worker. Temporal sends one of these at most."""
        if self._dropped or self.stopped_for or not _is_dropped():
            return False
        self._dropped = True
        activity.logger.warning("Temporal has dropped the activity of %s; it continues", self.job_id)
        if task := asyncio.current_task():
            task.uncancel()
        return True

    async def progress(self, percent: float, message: str | None = None) -> None:
        """Sets the progress, and lets other tasks run."""
        self._progress = {"progress": _decimal(min(100.0, max(0.0, percent)))}
        if message:
            self._progress["progressMessage"] = _storable(self._mask(message))[:200]
        self._wake.set()
        await asyncio.sleep(0)

    def mask_secrets(self, schema: object) -> None:
        """
        Masks the named secrets and the fields that `schema` marks as secret. Until then all texts are masked. An attempt
        whose secrets cannot all be masked is not made: a sender could fill the masker and read the named ones.
        Error: `JobFailure`.
        """
        masker = Masker([*self.secrets.values(), *secret_values(schema, self.payload)])
        self._mask = masker.text
        if not masker.is_complete:
            raise JobFailure(
                "secrets_not_maskable",
                "The secrets of the attempt cannot all be masked: there are too many, they have too many lines, "
                "or one is too long",
                retryable=False,
            )

    def add_line(self, level: str, message: str, data: dict[str, Any]) -> None:
        if len(self._lines) >= self._remaining:
            self._lost_lines += 1
            return
        if len(self._lines) >= MAX_WAITING_LINES:
            self._left_out += 1
            return
        at = datetime.now(UTC).isoformat()
        line: dict[str, Any] = {
            "level": level,
            "message": self._mask(message)[:MAX_MESSAGE],
            "at": at,
        }
        if data:
            line["data"] = self._data(data)
        self._lines.append(to_json(line) + b"\n")
        self._wake.set()

    def _data(self, data: dict[str, Any]) -> Any:
        """The data of a line as Holdfast takes it: it would refuse all lines that are sent with it."""
        try:
            kept = _masked(data, self._mask, str)
            size = len(to_json(kept))
        except (RecursionError, ValueError) as error:
            return {"leftOut": f"no JSON: {type(error).__name__}"}
        if size <= MAX_DATA_BYTES:
            return kept
        return {"leftOut": f"more than {MAX_DATA_BYTES} bytes"}

    async def watch(self) -> None:
        """Sends heartbeats to Temporal, and stops the work at its limit or when its lease may be lost."""
        now = asyncio.get_running_loop().time
        deadline = now() + self._timeout
        details = activity.info().heartbeat_details
        while True:
            # A heartbeat without details would take those of `_begin` away.
            activity.heartbeat(*details)
            # Another attempt may start when the lease has ended, but not after the last one.
            if now() - self._answered > 0.8 * self._lease and not self._is_last:
                self.stop("attempt_lost")
            elif now() > deadline:
                self.stop("timed_out")
            elif self._dropped and activity.is_worker_shutdown() and self._worker:
                # Temporal cancels an activity once.
                self._dropped = False
                self._worker.cancel()
            await asyncio.sleep(min(0.5, self._lease / 10))

    async def report(self) -> None:
        """Sends lines and progress four times a second, and empty requests that keep the lease."""
        pause = 0.0
        while True:
            try:
                async with asyncio.timeout(self._lease / 4):
                    await self._wake.wait()
                await asyncio.sleep(FLUSH_SECONDS)
            except TimeoutError:
                pass
            try:
                if await self.send():
                    self.stop("cancelled")
                pause = 0.0
            except AttemptLost:
                self.stop("attempt_lost")
            except ApiError as error:
                activity.logger.warning("Holdfast did not take lines of %s: %s", self.job_id, error)
                pause = min(max(pause * 2, FLUSH_SECONDS), MAX_PAUSE_SECONDS, self._lease / 8)
                await asyncio.sleep(max(pause, min(error.retry_after, self._lease / 4)))
                self._wake.set()

    def stop(self, reason: str) -> None:
        """Cancels the task that does the work."""
        if self.stopped_for is None and self._worker:
            self.stopped_for = reason
            self._worker.cancel()

    def is_over(self) -> None:
        """From now on nothing stops the task: it reports how the work has ended."""
        self._worker = None

    async def send(self) -> bool:
        """Sends what waits. Returns true if the work is to be cancelled."""
        self._wake.clear()
        sends_progress = True
        while True:
            if self._left_out and len(self._lines) < MAX_WAITING_LINES:
                count, self._left_out = self._left_out, 0
                self.add_line("warn", f"{count} lines were left out: they came too fast", {})
            batch: list[bytes] = []
            size = 0
            for line in self._lines:
                size += len(line)
                if len(batch) == MAX_LINES or size > MAX_BYTES:
                    break
                batch.append(line)
            progress: dict[str, str] = {}
            if sends_progress:
                progress, self._progress = self._progress, {}
            try:
                answer = await self._api.post(
                    f"/jobs/{self.job_id}/lines",
                    data=b"".join(batch),
                    query={"firstLine": str(self._have + 1), **progress},
                    attempt_token=self._token,
                    timeout=max(1.0, self._lease / 4),
                )
            except (ApiError, asyncio.CancelledError) as error:
                if isinstance(error, ApiError) and error.is_refusal:
                    if progress and batch:
                        # The lines may be accepted without it.
                        sends_progress = False
                        continue
                    self._drop(len(batch), error)
                    if self._lines:
                        continue
                    return False
                self._progress = self._progress or progress
                raise
            self._answered = asyncio.get_running_loop().time()
            self._lease = answer["leaseMs"] / 1_000
            self._remaining = answer.get("remainingLines", math.inf)
            # An answer may have been lost: then the server has more than it has answered for.
            for _ in range(min(answer["have"] - self._have, len(self._lines))):
                self._lines.popleft()
            self._have = answer["have"]
            if answer["cancel"] or not self._lines:
                return bool(answer["cancel"])

    def _drop(self, count: int, error: ApiError) -> None:
        """Removes lines that Holdfast will never accept."""
        activity.logger.warning("%d lines of %s are dropped: %s", count, self.job_id, error)
        self._lost_lines += count
        for _ in range(count):
            self._lines.popleft()

    async def _send_all(self) -> None:
        while self._lines or self._progress or self._left_out:
            await self.send()

    async def end(self, body: dict[str, Any]) -> None:
        """Sends the rest of the log, ends the attempt, and fails the activity as the API says."""
        try:
            await repeat_within(LAST_LINES_SECONDS, self._send_all)
        except ApiError as error:
            activity.logger.warning("The last lines of %s are lost: %s", self.job_id, error)
        try:
            answer = await self._send_end(body)
        except ApiError as error:
            activity.logger.warning("Holdfast did not take the end of %s: %s", self.job_id, error)
            # If it knows nothing of the attempt any more, it decides whether another one follows.
            may_follow = error.is_transient or error.status in (401, 403, 404, 409)
            raise _failure(error.code, BEGIN_AGAIN_MS if may_follow else None) from None
        if answer["status"] not in ("succeeded", "cancelled"):
            raise _failure(answer["code"] or "failed", answer["retryInMs"])

    async def _send_end(self, body: dict[str, Any]) -> Any:
        """Ends the attempt; one that is refused ends with the reason. Errors: `AttemptLost`, `ApiError`."""

        lost = {"droppedLines": self._lost_lines} if self._lost_lines else {}

        async def send(end: dict[str, Any]) -> Any:
            path = f"/jobs/{self.job_id}/end"
            return await self._api.post_within(
                END_SECONDS, path, {**end, **lost}, attempt_token=self._token
            )

        try:
            return await send(body)
        except ApiError as error:
            if not error.is_refusal:
                raise
            return await send(_instead(body, error))

    def success(self) -> dict[str, Any]:
        """The end of an attempt that has succeeded."""
        try:
            result = _masked(self.result or {}, self._mask, _refuse)
            # What cannot be sent must fail here.
            to_json(result, errors="strict")
            return {"result": result}
        except (TypeError, ValueError, RecursionError) as error:
            failure = JobFailure(
                "invalid_result", f"The result is not JSON: {error}", retryable=False
            )
            return self.failure_of(failure)

    def failure_of(self, error: BaseException) -> dict[str, Any]:
        if isinstance(error, JobFailure):
            failure = self._failure(self._mask(str(error.code)), error.message)
            failure["retryable"] = bool(error.retryable)
            seconds = _retry_after(error.retry_after_seconds)
            if seconds is not None:
                failure["retryAfterSeconds"] = seconds
            return {"failure": failure}
        return {"failure": self._failure("unexpected", f"{type(error).__name__}: {error}")}

    def _failure(self, code: str, message: object) -> dict[str, Any]:
        """A failure as Holdfast takes it: a code that it would refuse is part of the message."""
        text = self._mask(str(message))
        taken = re.sub("[^a-z0-9_]", "_", code.lower())[:MAX_CODE] or "failed"
        if taken != code:
            text = f"{code}: {text}"
        return {"code": taken, "message": _storable(text[:MAX_FAILURE_MESSAGE])}


class Log:
    """The log of a job. Keyword arguments are the data of the line."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt

    def debug(self, message: str, **data: Any) -> None:
        self._attempt.add_line("debug", message, data)

    def info(self, message: str, **data: Any) -> None:
        self._attempt.add_line("info", message, data)

    def warn(self, message: str, **data: Any) -> None:
        self._attempt.add_line("warn", message, data)

    def error(self, message: str, **data: Any) -> None:
        self._attempt.add_line("error", message, data)


@asynccontextmanager
async def attempt(
    api: RunnerApi, job_id: str, digest: str, schema: object = None
) -> AsyncIterator[Attempt]:
    """
    Begins the next attempt of a job within an activity, and ends it: with `result`, with the failure
    that was raised, or cancelled. `schema` is that of the payload: it says which fields are secret.
    Errors: `JobEnded`; `ApplicationError`, as the job goes on.
    """
    started, stopped = await _begin_whole(api, job_id, digest)
    job = Attempt(api, job_id, started)
    watching = asyncio.create_task(job.watch())
    reporting = asyncio.create_task(job.report())
    end: dict[str, Any] | None = None
    cancelled: asyncio.CancelledError | None = None
    try:
        try:
            if stopped:
                raise stopped
            job.mask_secrets(schema)
            yield job
            end = job.success()
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if job.stopped_for is None or (task and task.uncancel() > 0):
                cancelled = error
        except Exception as error:  # noqa: BLE001
            if not isinstance(error, JobFailure):
                activity.logger.exception("The job %s failed unexpectedly", job_id)
            end = job.failure_of(error)
        job.is_over()
        await _stopped(reporting)
        await _uninterrupted(_end(job, end))
    except AttemptLost:
        # Holdfast decides whether another attempt follows: it counts the attempts, and waits for the lease.
        raise _failure("attempt_lost", BEGIN_AGAIN_MS) from None
    finally:
        job.is_over()
        await _stopped(reporting, watching)
    if cancelled and (stopped or not activity.is_worker_shutdown()):
        raise cancelled


@contextmanager
def activity_body() -> Iterator[None]:
    """
    The body of an activity: one with nothing to do returns, and Temporal stores no text of an unexpected error, which may
    quote what the API has answered. Errors: `FailureError`; `CancelledError`.
    """
    try:
        yield
    except JobEnded:
        return
    except FailureError:
        raise
    except Exception:  # noqa: BLE001
        activity.logger.exception("An activity failed unexpectedly")
        raise _failure("unexpected", BEGIN_AGAIN_MS) from None


async def leave_to_others(api: RunnerApi, job_id: str) -> None:
    """
    Leaves a job whose type this worker does not have to another worker of the pool. Errors: `JobEnded`;
    `ApplicationError`, as the job goes on.
    """
    await _begin(api, job_id, None)
    raise _failure("not_announced", 1_000)


def _is_dropped() -> bool:
    """True if Temporal has cancelled the activity, and neither the job is to be cancelled nor the worker stops."""
    details = activity.cancellation_details()
    return (
        details is not None
        and not (details.cancel_requested or details.worker_shutdown)
        and not activity.is_worker_shutdown()
    )


async def _stopped(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _uninterrupted(work: Coroutine[Any, Any, None]) -> None:
    """Waits until `work` is done, also when the activity is cancelled in the meantime."""
    task = asyncio.ensure_future(work)
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise
    task.result()


async def _begin_whole(
    api: RunnerApi, job_id: str, digest: str
) -> tuple[dict[str, Any], asyncio.CancelledError | None]:
    """
    As `_begin`, also when the activity is cancelled in the meantime: what Holdfast has started must end.
    Returns the cancellation, too.
    """
    task = asyncio.ensure_future(_begin(api, job_id, digest))
    try:
        return await asyncio.shield(task), None
    except asyncio.CancelledError as error:
        now = asyncio.get_running_loop().time
        deadline = now() + STOPPED_BEGIN_SECONDS
        while not task.done():
            # Without an answer until then, the next activity makes the attempt.
            left = deadline - now()
            if left <= 0:
                task.cancel()
            try:
                await asyncio.wait({task}, timeout=max(left, 0.1))
            except asyncio.CancelledError:
                continue
        if task.cancelled():
            raise error from None
        return task.result(), error


async def _heartbeats() -> None:
    """Repeats the details of the last heartbeat of this activity: one without them would take them away."""
    while True:
        activity.heartbeat(*activity.info().heartbeat_details)
        await asyncio.sleep(HEARTBEAT_SECONDS)


async def _begin(api: RunnerApi, job_id: str, digest: str | None) -> dict[str, Any]:
    unanswered: list[str] = next(
        (each["unanswered"] for each in activity.info().heartbeat_details if "unanswered" in each),
        [],
    )
    # A request that is repeated after a lost answer gets the same attempt.
    token = secrets.token_urlsafe(32)
    body = {
        "runnerId": api.runner_id,
        "workflowRunId": activity.info().workflow_run_id,
        **({} if digest is None else {"digest": digest}),
        "attemptToken": token,
        **({"unanswered": unanswered} if unanswered else {}),
    }
    beating = asyncio.create_task(_heartbeats())
    try:
        answer: dict[str, Any] = await api.post_within(BEGIN_SECONDS, f"/jobs/{job_id}/begin", body)
    except (ApiError, asyncio.CancelledError) as error:
        # This activity makes no attempt: the next one makes that which may have started without an answer. Temporal
        # gets hashes: with the token its reader could report the end of the attempt.
        mine = hashlib.sha256(token.encode()).hexdigest()
        activity.heartbeat({"unanswered": [*unanswered, mine][-MAX_UNANSWERED:]})
        if not isinstance(error, ApiError):
            raise
        activity.logger.warning("The job %s could not begin: %s", job_id, error)
        raise _failure(error.code, BEGIN_AGAIN_MS) from None
    finally:
        beating.cancel()
    outcome = answer["outcome"]
    if outcome == "ended":
        raise JobEnded
    if outcome == "wait":
        raise _failure(answer["code"], answer["retryInMs"])
    if outcome == "failed":
        raise _failure(answer["code"], None)
    return answer


async def _end(job: Attempt, end: dict[str, Any] | None) -> None:
    """Reports how the attempt has ended."""
    if job.stopped_for == "attempt_lost":
        raise AttemptLost
    if job.stopped_for == "timed_out":
        end = {
            "failure": {
                "code": "timed_out",
                "message": "The attempt took longer than its type allows",
            }
        }
    elif end is None and activity.is_worker_shutdown():
        end = {"failure": {"code": "interrupted", "message": "The worker stopped"}}
    elif end is None and job.stopped_for is None and _is_dropped():
        end = {"failure": {"code": "interrupted", "message": "Temporal has dropped the activity"}}
    await job.end(end or {"cancelled": True})


def _failure(code: str, retry_in_ms: int | None) -> ApplicationError:
    """What Temporal stores: a code, and no data of the job."""
    return ApplicationError(
        f"The attempt failed with {code}",
        type=code,
        non_retryable=retry_in_ms is None,
        next_retry_delay=None if retry_in_ms is None else timedelta(milliseconds=retry_in_ms),
        category=ApplicationErrorCategory.BENIGN,
    )


def _instead(end: dict[str, Any], error: ApiError) -> dict[str, Any]:
    """The end of an attempt after one that is not accepted: too large, or not as its schema says."""
    failure = end.get("failure")
    code = "unexpected" if failure else "invalid_result"
    retryable = failure.get("retryable", True) if failure else False
    message = _storable(str(error)[:1_000])
    return {"failure": {"code": code, "message": message, "retryable": retryable}}


def _retry_after(seconds: object) -> float | None:
    """A delay that Holdfast takes; None for what is no number."""
    if not isinstance(seconds, (int, float)) or math.isnan(seconds):
        return None
    return min(MAX_RETRY_AFTER_SECONDS, max(0, seconds))


def _storable(text: str) -> str:
    """A text that can be part of a URL, and that Holdfast can store."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def _decimal(number: float) -> str:
    """A number without an exponent."""
    return f"{float(number):.4f}".rstrip("0").removesuffix(".")


def _masked(value: Any, mask: Callable[[str], str], other: Callable[[Any], Any]) -> Any:
    """
    A value with its texts and keys masked, and a number if it is a secret as a whole: JSON text in
    which a part of a number is masked would be none. `other` converts what is no JSON.
    """
    if isinstance(value, str):
        return mask(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return MASK if mask(json.dumps(value)) == MASK else value
    if isinstance(value, Mapping):
        return {_key(key, mask, other): _masked(each, mask, other) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_masked(each, mask, other) for each in value]
    return _masked(other(value), mask, other)


def _key(key: Any, mask: Callable[[str], str], other: Callable[[Any], Any]) -> str:
    """The name of a field; other keys become what JSON has for them."""
    text = _masked(key, mask, other)
    return text if isinstance(text, str) else json.dumps(text)


def _refuse(value: Any) -> Any:
    """Error: `ValueError`. A result is not changed silently."""
    raise ValueError(f"{str(value)[:100]} of the type {type(value).__name__}")
