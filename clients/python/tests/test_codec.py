"""The codec agrees with that of Holdfast: both read one vector."""

import base64
import json
import pathlib

import pytest
from cryptography.exceptions import InvalidTag
from temporalio.api.common.v1 import Payload

from holdfast_worker import EncryptionCodec

VECTOR = json.loads(
    (pathlib.Path(__file__).parents[3] / "test/fixtures/codec-vector.json").read_text()
)


def payload(view: dict) -> Payload:
    metadata = {name: value.encode() for name, value in view["metadata"].items()}
    return Payload(metadata=metadata, data=base64.b64decode(view["data"]))


PLAIN, SEALED = payload(VECTOR["plain"]), payload(VECTOR["sealed"])


async def test_what_holdfast_has_encrypted_is_decrypted():
    assert await EncryptionCodec.from_text(VECTOR["keys"]).decode([SEALED]) == [PLAIN]


async def test_what_is_encrypted_here_is_the_same_bytes(monkeypatch):
    monkeypatch.setattr("os.urandom", lambda length: SEALED.data[:length])
    assert await EncryptionCodec.from_text(VECTOR["keys"]).encode([PLAIN]) == [SEALED]


async def test_every_key_decrypts_and_plain_payloads_pass_through():
    new = f"new:{base64.b64encode(bytes(32)).decode()}"
    codec = EncryptionCodec.from_text(f"{new},{VECTOR['keys']}")
    assert await codec.decode([SEALED, PLAIN]) == [PLAIN, PLAIN]
    assert await codec.decode(await codec.encode([PLAIN])) == [PLAIN]
    with pytest.raises(ValueError, match="No key vector-2026"):
        await EncryptionCodec.from_text(new).decode([SEALED])


async def test_a_changed_payload_is_refused():
    data = SEALED.data[:-1] + bytes([SEALED.data[-1] ^ 1])
    with pytest.raises(InvalidTag):
        await EncryptionCodec.from_text(VECTOR["keys"]).decode(
            [Payload(metadata=SEALED.metadata, data=data)]
        )
