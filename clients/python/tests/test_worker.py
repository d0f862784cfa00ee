import pytest
from temporalio.client import TLSConfig

from holdfast_worker import Settings, Worker

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
