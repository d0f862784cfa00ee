"""Job types of Holdfast in Python: docs/python-worker.md is the guide."""

from .api import AttemptLost, RunnerApi
from .attempts import Attempt, JobEnded, JobFailure, attempt
from .codec import EncryptionCodec
from .worker import JobType, Settings, Worker

__all__ = [
    "Attempt",
    "AttemptLost",
    "EncryptionCodec",
    "JobEnded",
    "JobFailure",
    "JobType",
    "RunnerApi",
    "Settings",
    "Worker",
    "attempt",
]
