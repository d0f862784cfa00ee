"""The payload codec of Holdfast: AES-256-GCM, with the id of the key as authenticated data."""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from temporalio.api.common.v1 import Payload
from temporalio.converter import PayloadCodec

ENCODING = b"binary/encrypted"
NONCE_BYTES = 12


class EncryptionCodec(PayloadCodec):
    """The first key encrypts, every key decrypts. What is not encrypted passes through."""

    def __init__(self, keys: Sequence[tuple[str, bytes]]) -> None:
        if not keys:
            raise ValueError("a codec needs a key")
        self._current = keys[0]
        self._keys = dict(keys)

    @staticmethod
    def from_text(text: str) -> EncryptionCodec:
        """Keys as in `HOLDFAST_TEMPORAL_CODEC_KEYS`: `id:base64,…`."""
        entries = [entry.strip().partition(":") for entry in text.split(",") if entry.strip()]
        return EncryptionCodec([(key_id, base64.b64decode(key)) for key_id, _, key in entries])

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [self._seal(payload) for payload in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [self._open(payload) for payload in payloads]

    def _seal(self, payload: Payload) -> Payload:
        key_id, key = self._current
        nonce = os.urandom(NONCE_BYTES)
        sealed = AESGCM(key).encrypt(nonce, payload.SerializeToString(), key_id.encode())
        metadata = {"encoding": ENCODING, "encryption-key-id": key_id.encode()}
        return Payload(metadata=metadata, data=nonce + sealed)

    def _open(self, payload: Payload) -> Payload:
        if payload.metadata.get("encoding") != ENCODING:
            return payload
        key_id = payload.metadata.get("encryption-key-id", b"").decode()
        if key_id not in self._keys:
            raise ValueError(f"No key {key_id} in HOLDFAST_TEMPORAL_CODEC_KEYS")
        nonce, sealed = payload.data[:NONCE_BYTES], payload.data[NONCE_BYTES:]
        plain = AESGCM(self._keys[key_id]).decrypt(nonce, sealed, key_id.encode())
        return Payload.FromString(plain)
