import { expect, test } from '@jest/globals';
import type { Knex } from '../../../db/core/knex.ts';
import { readSnapshot } from '../../../db/core/readSnapshot.ts';
import { withDatabase } from '../../support/database.ts';

let db: Knex;
withDatabase((opened) => (db = opened));

test('a question leaves its plans to the next one on the connection', async () => {
  const options = { signal: new AbortController().signal, timeoutMs: 5_000 };
  await readSnapshot(db, options, async (trx) => trx.raw('SELECT use_indexes()'));
  const { rows } = await db.raw("SELECT current_setting('holdfast.planned_sizes', true) AS sizes");
  expect(rows).toEqual([{ sizes: expect.stringMatching(/\d/) }]);
});
