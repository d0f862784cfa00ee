import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Knex } from '../../../db/core/knex.ts';
import { releaseSlot } from '../../../db/runners/attempts.ts';
import { finishCancellation } from '../../../db/webhooks/deliveryQueue.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { waitingForLock } from '../../support/waitingForLock.ts';

/** What changes while a statement waits for a row must count, also in other tables. */
let app: TestApp;
let db: Knex;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' }, { idle: true });
  ({ db } = app.deps);
});
afterAll(() => app.stop());

/** Starts `work` while a transaction has made `change`, and commits that when `work` waits or has ended. */
async function duringChange<T>(change: (trx: Knex) => Promise<void>, work: () => Promise<T>) {
  const trx = await db.transaction();
  await trx.raw('SET LOCAL session_replication_role = replica');
  await change(trx);
  let isDone = false;
  const result = work().finally(() => (isDone = true));
  await eventually(
    async () => isDone || (await waitingForLock(db, 'transactionid')).length > 0,
    (is) => is,
  );
  await trx.commit();
  return result;
}

test('a job keeps its slot when another runner begins it', async () => {
  const { id } = await app.client
    .post<{ id: string }>('/api/jobs', { type: 'core.echo', payload: {} })
    .expect(201);
  await db('jobs').where({ id }).update({ slot: 'held', status: 'queued' });
  const begin = async (trx: Knex) => {
    await trx('jobs').where({ id }).update({ status: 'running', attempts: 1, run_id: 'run' });
    const later = new Date(Date.now() + 60_000);
    await trx('remote_attempts').insert({
      ...{ job_id: id, attempt: 1, run_id: 'run', runner_id: 'r', token_id: 't' },
      ...{ token_hash: Buffer.from('t'), digest: 'd', lease_ms: 60_000 },
      ...{ leased_until: later, ends_at: later, began_at: new Date() },
    });
  };
  const release = () => db.transaction((trx) => releaseSlot(trx, id));
  expect(await duringChange(begin, release)).toBe(false);
  expect(await db('jobs').where({ id }).first('slot')).toEqual({ slot: 'held' });
});

test('a webhook that is disabled again cancels the deliveries that it got before', async () => {
  const { id } = await app.client
    .as({ actor: 'root', roles: 'platform-admin', tenant: 'platform' })
    .post<{ id: string }>('/api/webhooks', { endpointUrl: 'https://x.example', eventTypes: ['*'] })
    .expect(201);
  const at = new Date(Date.now() - 60_000);
  await db('webhooks').where({ id }).update({ cancel_before: at, cancel_reason: 'test' });
  const disable = async (trx: Knex) => {
    await trx('webhooks')
      .where({ id })
      .update({
        ...{ enabled: false, cancel_before: trx.fn.now() },
        ...{ disabled_at: trx.fn.now(), disabled_reason: 'request' },
      });
    await trx('deliveries').insert({
      ...{ id: 'dlv_1', tenant_id: 'platform', webhook_id: id, event_id: 'evt_1' },
      ...{ status: 'pending', queued_at: at, created_at: at, updated_at: at },
    });
  };
  await duringChange(disable, () => finishCancellation(db, id));
  expect((await db('webhooks').where({ id }).first('cancel_before')).cancel_before).not.toBeNull();
  await db('deliveries').where({ id: 'dlv_1' }).del();
  await finishCancellation(db, id);
  expect((await db('webhooks').where({ id }).first('cancel_before')).cancel_before).toBeNull();
});
