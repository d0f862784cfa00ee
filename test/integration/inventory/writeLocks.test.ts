import { expect, test } from '@jest/globals';
import type { Knex } from '../../../db/core/knex.ts';
import { withDatabase } from '../../support/database.ts';

let db: Knex;
withDatabase((opened) => (db = opened));

type Asked = {
  vrf: string;
  tenant: string;
  takesTurn: boolean;
  isBrief: boolean;
  forPlatform: boolean;
};

/** The advisory locks that a transaction gets and how long it waits for more. */
const locksOf = (asked: Asked, repeat: 1 | 2) =>
  db.transaction(async (trx) => {
    const list = (value: string) => Array.from({ length: repeat }, () => value);
    await trx.raw('SELECT prepare_to_write(?, ?, ?, ?, ?, ?, ?)', [
      asked.takesTurn,
      asked.isBrief,
      list(asked.vrf),
      list(asked.tenant),
      asked.forPlatform,
      ['platform', ...list(asked.tenant)],
      [],
    ]);
    const { rows } = await trx.raw<{ rows: { locks: string[]; wait: string }[] }>(
      `SELECT ARRAY(SELECT mode || ' ' || classid || ' ' || objid FROM pg_locks
         WHERE locktype = 'advisory' AND pid = pg_backend_pid() ORDER BY 1) AS locks,
       current_setting('lock_timeout') AS wait`,
    );
    return rows[0];
  });

const either = [false, true];
const cases = ['global', 'vrf_own', 'vrf_shared', 'vrf_missing'].flatMap((vrf) =>
  ['acme', 'platform'].flatMap((tenant) =>
    either.flatMap((forPlatform) =>
      either.flatMap((takesTurn) =>
        either.map((isBrief): Asked => ({ vrf, tenant, forPlatform, takesTurn, isBrief })),
      ),
    ),
  ),
);

test('one space, the usual case, is locked as several are', async () => {
  await db.raw(
    `INSERT INTO vrfs (id, tenant_id, name, enforce_unique) VALUES
       ('vrf_own', 'acme', 'own', true), ('vrf_shared', 'platform', 'shared', true)`,
  );
  const seen = new Set<string>();
  for (const asked of cases) {
    const alone = await locksOf(asked, 1);
    expect({ asked, got: alone }).toEqual({ asked, got: await locksOf(asked, 2) });
    seen.add(JSON.stringify(alone));
  }
  expect(seen.size).toBeGreaterThan(10);
});
