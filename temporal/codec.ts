import {
  METADATA_ENCODING_KEY,
  ValueError,
  type Payload,
  type PayloadCodec,
} from '@temporalio/common';
import proto from '@temporalio/proto';
import { openBytes, sealBytes } from '../platform/aesGcm.ts';
import type { TemporalSettings } from '../platform/config.ts';

const ENCODING = 'binary/encrypted';
const KEY_ID = 'encryption-key-id';

const toUtf8 = (bytes: Uint8Array | null | undefined) =>
  bytes ? Buffer.from(bytes).toString('utf8') : '';

/**
 * Encrypts payloads with AES-256-GCM; the key id is additional authenticated data. The first key
 * encrypts and every key decrypts, so keys can be rotated while workflows run.
 */
export function createCodec(keys: TemporalSettings['codecKeys']): PayloadCodec[] {
  const [current] = keys;
  if (!current) return [];
  const byId = new Map(keys.map(({ id, key }) => [id, key]));

  const seal = (payload: Payload): Payload => {
    const data = sealBytes(
      current.key,
      proto.temporal.api.common.v1.Payload.encode(payload).finish(),
      current.id,
    );
    return {
      metadata: {
        [METADATA_ENCODING_KEY]: Buffer.from(ENCODING),
        [KEY_ID]: Buffer.from(current.id),
      },
      data,
    };
  };

  const open = (payload: Payload): Payload => {
    if (toUtf8(payload.metadata?.[METADATA_ENCODING_KEY]) !== ENCODING) return payload;
    const id = toUtf8(payload.metadata?.[KEY_ID]);
    const key = byId.get(id);
    if (!key) throw new ValueError(`No key ${id} in HOLDFAST_TEMPORAL_CODEC_KEYS`);
    return proto.temporal.api.common.v1.Payload.decode(
      openBytes(key, Buffer.from(payload.data ?? []), id),
    );
  };

  return [
    {
      encode: (payloads) => Promise.resolve(payloads.map(seal)),
      decode: (payloads) => Promise.resolve(payloads.map(open)),
    },
  ];
}
