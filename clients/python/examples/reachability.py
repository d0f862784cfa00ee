"""A worker with one job type: which hosts accept connections on a TCP port? See docs/python-worker.md."""

import asyncio
import logging

from holdfast_worker import Attempt, JobFailure, Settings, Worker

worker = Worker(Settings.from_env())


@worker.job_type(
    "lab.reachability",
    summary="Checks which hosts accept connections on a TCP port",
    access="open",
    payload={
        "type": "object",
        "additionalProperties": False,
        "required": ["hosts", "port"],
        "properties": {
            "hosts": {
                "type": "array",
                "items": {"type": "string"},
                "minItems": 1,
                "maxItems": 1000,
            },
            "port": {"type": "integer", "minimum": 1, "maximum": 65535},
            "pauseSeconds": {"type": "number", "minimum": 0, "maximum": 3600, "default": 0},
            "required": {
                "type": "boolean",
                "default": False,
                "title": "All hosts must be reachable",
            },
        },
    },
    timeout_seconds=3600,
    lost_after_seconds=5,
    retry={"maxAttempts": 3, "initialIntervalSeconds": 0.1},
)
async def reachability(job: Attempt) -> dict[str, object]:
    hosts, port = job.payload["hosts"], job.payload["port"]
    reachable: list[str] = []
    for done, host in enumerate(hosts):
        await job.progress(100 * done / len(hosts), host)
        if await accepts(host, port):
            reachable.append(host)
            job.log.info(f"{host} accepts connections", port=port)
        else:
            job.log.warn(f"{host} does not answer", port=port)
        await asyncio.sleep(job.payload["pauseSeconds"])
    missing = sorted(set(hosts) - set(reachable))
    if missing and job.payload["required"]:
        raise JobFailure("unreachable", f"{len(missing)} of {len(hosts)} hosts do not answer")
    return {"reachable": reachable, "missing": missing}


async def accepts(host: str, port: int) -> bool:
    try:
        async with asyncio.timeout(3):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    asyncio.run(worker.run())
