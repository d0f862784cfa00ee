"""A worker of a pool: announces its types, and runs their activities."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import logging
import os
import pathlib
import re
import signal
import socket
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import temporalio.worker
from temporalio import activity
from temporalio.api.workflowservice.v1 import GetSystemInfoRequest
from temporalio.client import Client, TLSConfig
from temporalio.common import RawValue
from temporalio.converter import DataConverter
from temporalio.service import RPCError

from .api import ApiError, RunnerApi
from .attempts import Attempt, activity_body, attempt, leave_to_others
from .codec import EncryptionCodec

VERSION = "0.2.0"
PROBE_TIMEOUT = timedelta(seconds=5)
LOST_AFTER_PROBES = 2
log = logging.getLogger("holdfast")
Run = Callable[[Attempt], Awaitable[dict[str, Any] | None]]


@dataclass(frozen=True)
class Settings:
    """Where Holdfast and Temporal are; `from_env` reads the variables that runners have."""

    url: str
    token: str
    pool: str = "default"
    slots: int = 10
    temporal_address: str = "127.0.0.1:7233"
    temporal_api_key: str | None = None
    temporal_tls: bool | TLSConfig = False
    codec_keys: str | None = None
    token_file: str | None = None

    @staticmethod
    def from_env(env: Mapping[str, str] = os.environ) -> Settings:
        token, token_file = env.get("HOLDFAST_RUNNER_TOKEN"), None
        if not token and (token_file := env.get("HOLDFAST_RUNNER_TOKEN_FILE")):
            token = pathlib.Path(token_file).read_text().strip()
        url = env.get("HOLDFAST_URL")
        if not url or not token:
            raise SystemExit(
                "Set HOLDFAST_URL, and HOLDFAST_RUNNER_TOKEN or HOLDFAST_RUNNER_TOKEN_FILE"
            )
        return Settings(
            url=url,
            token=token,
            pool=env.get("HOLDFAST_RUNNER_POOL") or "default",
            slots=int(env.get("HOLDFAST_RUNNER_SLOTS") or 10),
            temporal_address=env.get("TEMPORAL_ADDRESS") or "127.0.0.1:7233",
            temporal_api_key=env.get("TEMPORAL_API_KEY") or None,
            temporal_tls=_tls_from(env),
            codec_keys=env.get("HOLDFAST_TEMPORAL_CODEC_KEYS") or None,
            token_file=token_file or None,
        )

    def current_token(self) -> str | None:
        """The token that the file has now; none without a file, or if it cannot be read."""
        try:
            token = pathlib.Path(self.token_file).read_text().strip() if self.token_file else ""
        except (OSError, ValueError):
            return None
        return token if re.fullmatch(r"hfw_[!-~]{16,200}", token) else None


@dataclass(frozen=True)
class JobType:
    """A job type: what is announced, and the function that does the work."""

    definition: dict[str, Any]
    run: Run
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        """The digest is that of the definition and of the file with the function."""
        file = inspect.getsourcefile(self.run)
        code = pathlib.Path(file).read_bytes() if file else b""
        text = json.dumps(self.definition, sort_keys=True).encode()
        object.__setattr__(self, "digest", hashlib.sha256(text + b"\0" + code).hexdigest())


class Worker:
    """Collects job types (`@worker.job_type(…)`) and runs them (`await worker.run()`)."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.types: dict[str, JobType] = {}
        self.announce_seconds = 60.0
        """How long an announcement is repeated while Holdfast is not there."""
        self._states: dict[str, str] = {}
        self._client: Client | None = None
        """Of Temporal; none before the worker has connected."""
        self._failed_probes = 0

    def job_type(
        self, name: str, *, summary: str, payload: dict[str, Any], **more: Any
    ) -> Callable[[Run], Run]:
        """
        Declares a type. `more` has the other fields of a definition, such as `timeout_seconds`, `access`,
        `targets`, `retry`, `concurrency`, `secrets`. What is inside of them has the names of the API.
        """
        pool = self.settings.pool
        fields = {_camel_case(field): value for field, value in more.items()}
        definition = {"name": name, "summary": summary, "pool": pool, "payload": payload, **fields}

        def declare(run: Run) -> Run:
            self.types[name] = JobType(definition, run)
            return run

        return declare

    async def run(self, stop: asyncio.Event | None = None) -> None:
        """Announces the types and runs their jobs until SIGTERM, SIGINT or `stop`."""
        stop = stop or _stop_on_signals()
        settings = self.settings
        async with RunnerApi(
            settings.url, settings.token, str(uuid.uuid4()), settings.current_token
        ) as api:
            announced = await self._announce_first(api)
            client = self._client = await self._connect(announced["namespace"])
            async with temporalio.worker.Worker(
                client,
                task_queue=announced["taskQueue"],
                activities=[
                    *(self._activity(api, each) for each in self.types.values()),
                    self._other_activity(api),
                ],
                max_concurrent_activities=self.settings.slots,
                # A cancellation arrives with the answer to a heartbeat.
                max_heartbeat_throttle_interval=timedelta(seconds=1),
                default_heartbeat_throttle_interval=timedelta(seconds=1),
                graceful_shutdown_timeout=timedelta(0),
            ):
                await self._report(api, announced["everySeconds"], stop)
            await self._leave(api)

    def _activity(self, api: RunnerApi, job_type: JobType) -> Callable[..., Any]:
        @activity.defn(name=job_type.definition["name"])
        async def run(start: dict[str, Any]) -> None:
            schema = job_type.definition["payload"]
            with activity_body():
                async with attempt(api, start["jobId"], job_type.digest, schema) as job:
                    job.result = await job.run(job_type.run(job))

        return run

    def _other_activity(self, api: RunnerApi) -> Callable[..., Any]:
        """
        Types of other workers of the pool, which share its queue. Holdfast must hear of it: the job keeps a
        slot of the pool otherwise.
        """

        @activity.defn(dynamic=True)
        async def run(args: Sequence[RawValue]) -> None:
            with activity_body():
                start = activity.payload_converter().from_payload(args[0].payload, dict)
                await leave_to_others(api, start["jobId"])

        return run

    def _process(self, api: RunnerApi) -> dict[str, Any]:
        return {"runnerId": api.runner_id, "pool": self.settings.pool}

    async def _announce(self, api: RunnerApi) -> Any:
        types = [
            {"digest": each.digest, "definition": each.definition} for each in self.types.values()
        ]
        body = {
            "name": socket.gethostname(),
            "version": f"python {VERSION}",
            "slots": self.settings.slots,
        }
        answer = await api.post_within(
            self.announce_seconds, "/announce", {**self._process(api), **body, "types": types}
        )
        self._note(answer["types"])
        return answer

    async def _announce_first(self, api: RunnerApi) -> Any:
        """As `_announce`. Error: `SystemExit`, which says why Holdfast refuses all types together."""
        try:
            return await self._announce(api)
        except ApiError as error:
            if not error.is_refusal:
                raise
            raise SystemExit(
                f"Holdfast refuses the announcement of {len(self.types)} types: {error}"
            ) from error

    async def _report(self, api: RunnerApi, every_seconds: float, stop: asyncio.Event) -> None:
        """Reports that the worker is alive until `stop`."""
        while not stop.is_set():
            try:
                await asyncio.wait_for(stop.wait(), every_seconds)
            except TimeoutError:
                try:
                    await self._report_once(api)
                except ApiError as error:
                    if not error.is_transient:
                        raise
                    log.warning("Holdfast is not there: %s", error)

    async def _report_once(self, api: RunnerApi) -> None:
        try:
            lost = {} if await self._reaches_temporal() else {"reachesTemporal": False}
            self._note((await api.post("/alive", {**self._process(api), **lost}))["types"])
        except ApiError as error:
            if error.code != "unknown_runner":
                raise
            await self._announce(api)

    async def _reaches_temporal(self) -> bool:
        """
        Asks Temporal, which the SDK polls without a word until it answers. It counts as lost after two failures: one
        that restarts is soon back.
        """
        if self._client is None:
            return True
        try:
            await self._client.workflow_service.get_system_info(
                GetSystemInfoRequest(), timeout=PROBE_TIMEOUT
            )
        except RPCError as error:
            self._failed_probes += 1
            if self._failed_probes == LOST_AFTER_PROBES:
                log.error("The worker takes no jobs: it does not reach Temporal: %s", error)
        else:
            if self._failed_probes >= LOST_AFTER_PROBES:
                log.info("The worker reaches Temporal again")
            self._failed_probes = 0
        return self._failed_probes < LOST_AFTER_PROBES

    async def _leave(self, api: RunnerApi) -> None:
        """Says that the worker stops. Without an answer, Holdfast notices it later."""
        try:
            await api.post("/leave", self._process(api))
        except ApiError as error:
            log.warning("The worker stops without leaving the list of runners: %s", error)

    def _note(self, types: list[dict[str, Any]]) -> None:
        """Logs the state of each type when it changes."""
        for each in types:
            state = " ".join([each["state"], each.get("reason") or ""]).strip()
            if self._states.get(each["name"]) != state:
                self._states[each["name"]] = state
                log.info("%s: %s", each["name"], state)

    async def _connect(self, namespace: str) -> Client:
        keys = self.settings.codec_keys
        converter = DataConverter(payload_codec=EncryptionCodec.from_text(keys) if keys else None)
        return await Client.connect(
            self.settings.temporal_address,
            namespace=namespace,
            api_key=self.settings.temporal_api_key,
            tls=self.settings.temporal_tls or self.settings.temporal_api_key is not None,
            data_converter=converter,
        )


def _tls_from(env: Mapping[str, str]) -> bool | TLSConfig:
    """As the processes of Holdfast read it: certificates of their own also enable TLS."""

    def content(name: str) -> bytes | None:
        file = env.get(f"TEMPORAL_TLS_{name}_PATH")
        return pathlib.Path(file).read_bytes() if file else None

    authority, domain = content("SERVER_CA_CERT"), env.get("TEMPORAL_TLS_SERVER_NAME") or None
    certificate, key = content("CLIENT_CERT"), content("CLIENT_KEY")
    if not (authority or domain or certificate or key):
        return env.get("TEMPORAL_TLS") in ("1", "true")
    return TLSConfig(
        server_root_ca_cert=authority,
        domain=domain,
        client_cert=certificate,
        client_private_key=key,
    )


def _camel_case(name: str) -> str:
    first, *words = name.split("_")
    return first + "".join(word.capitalize() for word in words)


def _stop_on_signals() -> asyncio.Event:
    stop = asyncio.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, stop.set)
    return stop
