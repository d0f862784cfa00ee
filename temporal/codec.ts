import {
  METADATA_ENCODING_KEY,
  RawValue,
  ValueError,
  defaultPayloadConverter,
  type Payload,
  type PayloadCodec,
} from '@temporalio/common';
import proto from '@temporalio/proto';
import { openBytes, sealBytes } from '../platform/aesGcm.ts';
import type { TemporalSettings } from '../platform/config.ts';

const ENCODING = 'binary/encrypted';
const KEY_ID = 'encryption-key-id';
/** Marks a payload that stays readable without a key. */
const UNENCRYPTED = 'holdfast-unencrypted';

const toUtf8 = (bytes: Uint8Array | null | undefined) =>
  bytes ? Buffer.from(bytes).toString('utf8') : '';

/** The key that encrypts a payload; undefined for one that is not encrypted. */
export const keyIdOf = ({ metadata }: Payload): string | undefined =>
  toUtf8(metadata?.[METADATA_ENCODING_KEY]) === ENCODING ? toUtf8(metadata?.[KEY_ID]) : undefined;

/** A value that the codec does not encrypt: what an installation must be able to read without the keys. */
export function unencrypted(value: unknown): RawValue {
  const payload = defaultPayloadConverter.toPayload(value);
  const metadata = { ...payload.metadata, [UNENCRYPTED]: Buffer.from('true') };
  return RawValue.fromPayload({ ...payload, metadata });
}

/**
 * Encrypts payloads with AES-256-GCM; the key id is additional authenticated data. The first key
 * encrypts and every key decrypts, so keys can be rotated while workflows run.
 */
export function createCodec(keys: TemporalSettings['codecKeys']): PayloadCodec[] {
  const [current] = keys;
  if (!current) return [];
  const byId = new Map(keys.map(({ id, key }) => [id, key]));

  const seal = (payload: Payload): Payload => {
    if (payload.metadata?.[UNENCRYPTED]) return payload;
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
    const id = keyIdOf(payload);
    if (id === undefined) return payload;
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

/**
 * The codec of schedules. It decodes what it cannot read to null: the list has the schedules of other
 * installations, with other keys or none, and a schedule may have been written with a key that was removed.
 */
export function createScheduleCodec(keys: TemporalSettings['codecKeys']): PayloadCodec[] {
  const [codec] = createCodec(keys);
  const unreadable = defaultPayloadConverter.toPayload(null);
  const decodeOne = async (payload: Payload): Promise<Payload> => {
    try {
      const [opened = payload] = (await codec?.decode([payload])) ?? [];
      defaultPayloadConverter.fromPayload(opened);
      return opened;
    } catch {
      return unreadable;
    }
  };
  return [
    {
      encode: (payloads) => codec?.encode(payloads) ?? Promise.resolve(payloads),
      decode: (payloads) => Promise.all(payloads.map(decodeOne)),
    },
  ];
}
