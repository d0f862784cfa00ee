import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { METADATA_ENCODING_KEY, ValueError, type Payload, type PayloadCodec } from '@temporalio/common';
import proto from '@temporalio/proto';
import type { TemporalSettings } from '../platform/config.ts';

const ENCODING = 'binary/encrypted';
const KEY_ID = 'encryption-key-id';
const IV_BYTES = 12;
const TAG_BYTES = 16;

const text = (bytes: Uint8Array | null | undefined) => (bytes ? Buffer.from(bytes).toString('utf8') : '');

/**
 * Seals what goes to Temporal with AES-256-GCM (NIST SP 800-38D), the key id as additional data. The first key
 * encrypts, every key decrypts, so that a key can be replaced while runs are open.
 */
export function createCodec(keys: TemporalSettings['codecKeys']): PayloadCodec[] {
  const [current] = keys;
  if (!current) return [];
  const byId = new Map(keys.map(({ id, key }) => [id, key]));

  const seal = (payload: Payload): Payload => {
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv('aes-256-gcm', current.key, iv).setAAD(Buffer.from(current.id));
    const plain = proto.temporal.api.common.v1.Payload.encode(payload).finish();
    const data = Buffer.concat([iv, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
    return { metadata: { [METADATA_ENCODING_KEY]: Buffer.from(ENCODING), [KEY_ID]: Buffer.from(current.id) }, data };
  };

  const open = (payload: Payload): Payload => {
    if (text(payload.metadata?.[METADATA_ENCODING_KEY]) !== ENCODING) return payload;
    const id = text(payload.metadata?.[KEY_ID]);
    const key = byId.get(id);
    if (!key) throw new ValueError(`No key ${id} in HOLDFAST_TEMPORAL_CODEC_KEYS`);
    const data = Buffer.from(payload.data ?? []);
    const decipher = createDecipheriv('aes-256-gcm', key, data.subarray(0, IV_BYTES)).setAAD(Buffer.from(id));
    decipher.setAuthTag(data.subarray(-TAG_BYTES));
    const plain = Buffer.concat([decipher.update(data.subarray(IV_BYTES, -TAG_BYTES)), decipher.final()]);
    return proto.temporal.api.common.v1.Payload.decode(plain);
  };

  return [
    {
      encode: (payloads) => Promise.resolve(payloads.map(seal)),
      decode: (payloads) => Promise.resolve(payloads.map(open)),
    },
  ];
}
