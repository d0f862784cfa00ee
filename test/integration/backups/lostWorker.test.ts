import { expect, test } from '@jest/globals';
import { lockForRestore } from '../../../db/backups/applyRestore.ts';
import { withBackupConnection } from '../../../db/backups/backupConnection.ts';
import { planRestore } from '../../../db/backups/restorePlan.ts';
import { removeTimeouts } from '../../../db/backups/restoreRuns.ts';
import { queryIn, queryOn } from '../../../db/backups/sql.ts';
import type { Knex } from '../../../db/core/knex.ts';
import { SECTIONS } from '../../../domain/backups/backups.ts';
import type { TestApp } from '../../support/app.ts';
import { withBackups } from '../../support/backups.ts';
import type { TestClient } from '../../support/client.ts';

let app: TestApp;
let root: TestClient;
withBackups((fixture) => void ({ app, root } = fixture));

const planOfAll = async (trx: Knex) =>
  planRestore(queryIn(trx), {
    schema: 'public',
    scope: { tenantId: null },
    sections: SECTIONS,
    archived: SECTIONS.flatMap((section) => [{ section, name: 'sites', columns: ['id'] }]),
  });

test('writers wait for a restore whose worker stops only until the server ends its transaction', async () => {
  const { db } = app.deps;
  const trx = await db.transaction();
  await lockForRestore(trx, await planOfAll(trx), 5_000, 700);
  // From here on the worker says nothing.
  const { status } = await root.post('/api/inventory/sites', { name: 'written' });
  expect(status).toBe(201);
  await expect(trx.raw('SELECT 1')).rejects.toThrow();
  await trx.rollback().catch(() => undefined);
});

test('a comparison whose worker stops ends, and a backup may pause', async () => {
  const { db } = app.deps;
  const IDLE = `SELECT current_setting('idle_in_transaction_session_timeout') AS idle`;
  await db.transaction(async (trx) => {
    await removeTimeouts(trx);
    expect(await queryIn(trx)(IDLE)).toEqual([{ idle: '1min' }]);
  });
  await withBackupConnection(app.databaseUrl, new AbortController().signal, async (connection) => {
    expect(await queryOn(connection)(IDLE)).toEqual([{ idle: '0' }]);
  });
});
