import { randomBytes } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { defaultPayloadConverter, type Payload } from '@temporalio/common';
import { readConfig } from '../../../platform/config.ts';
import vector from '../../fixtures/codec-vector.json' with { type: 'json' };
import { createCodec } from '../../../temporal/codec.ts';

const key = (id: string) => ({ id, key: randomBytes(32) });
const [old, current] = [key('2025'), key('2026')];
const createTestCodec = (...keys: { id: string; key: Buffer }[]) => {
  const [codec] = createCodec(keys);
  if (!codec) throw new Error('no codec');
  return codec;
};
const plain = defaultPayloadConverter.toPayload({ jobId: 'job_1' });

describe('the payload codec', () => {
  test('hides what it encrypts, and decrypts it', async () => {
    const codec = createTestCodec(current);
    const [sealed] = await codec.encode([plain]);
    expect(Buffer.from(sealed?.data ?? []).toString('latin1')).not.toContain('job_1');
    const [opened] = await codec.decode([sealed as Payload]);
    expect(defaultPayloadConverter.fromPayload(opened as Payload)).toEqual({ jobId: 'job_1' });
  });

  test('decrypts with an older key after a rotation, and passes plain payloads through', async () => {
    const [sealed] = await createTestCodec(old).encode([plain]);
    const [opened, untouched] = await createTestCodec(current, old).decode([
      sealed as Payload,
      plain,
    ]);
    expect(defaultPayloadConverter.fromPayload(opened as Payload)).toEqual({ jobId: 'job_1' });
    expect(untouched).toBe(plain);
  });

  test.each(['a flipped byte', 'another key id'])('rejects %s', async (what) => {
    const [sealed] = await createTestCodec(old).encode([plain]);
    const forged = { metadata: { ...sealed?.metadata }, data: Buffer.from(sealed?.data ?? []) };
    if (what === 'a flipped byte') forged.data[20] = (forged.data[20] ?? 0) ^ 1;
    else forged.metadata['encryption-key-id'] = Buffer.from('2026');
    await expect(async () => createTestCodec(current, old).decode([forged])).rejects.toThrow();
  });

  test('reads the vector that clients in other languages read', async () => {
    const view = ({
      metadata,
      data,
    }: {
      metadata: Record<string, string>;
      data: string;
    }): Payload => ({
      metadata: Object.fromEntries(
        Object.entries(metadata).map(([name, value]) => [name, Buffer.from(value)]),
      ),
      data: Buffer.from(data, 'base64'),
    });
    const { temporal } = readConfig({
      DATABASE_URL: 'postgres://unused',
      HOLDFAST_TEMPORAL_CODEC_KEYS: vector.keys,
    });
    const [codec] = createCodec(temporal.codecKeys);
    const [opened] = (await codec?.decode([view(vector.sealed)])) ?? [];
    const plain = view(vector.plain);
    expect(Buffer.from(opened?.data ?? [])).toEqual(plain.data);
    expect(Buffer.from(opened?.metadata?.encoding ?? [])).toEqual(plain.metadata?.encoding);
  });

  test('encrypts nothing without a key', () => {
    expect(createCodec([])).toEqual([]);
  });
});
