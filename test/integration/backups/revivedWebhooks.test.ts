import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { ScheduleRecord } from '../../../api/schedules/schemas.ts';
import type { WebhookRecord } from '../../../api/webhooks/schemas.ts';
import type { TestApp } from '../../support/app.ts';
import {
  backupCreator,
  restorer,
  restoreValidator,
  withBackups,
  type Validation,
} from '../../support/backups.ts';
import type { TestClient } from '../../support/client.ts';
import { eventually } from '../../support/eventually.ts';
import { startSink, type Sink } from '../../support/sink.ts';
import { verifyMessage } from '../../support/webhooks.ts';

let app: TestApp;
let root: TestClient;
let sink: Sink;
withBackups(async (fixture) => {
  ({ app } = fixture);
  sink = await startSink();
  root = app.client.as({ actor: 'root', roles: 'platform-admin', tenant: 'platform' });
});

afterAll(() => sink.stop());

const url = (name: string) => sink.url(`/${name}`);
const readWebhook = (id: string) => root.get<WebhookRecord>(`/api/webhooks/${id}`).expect(200);
const row = (table: string, id: string) => app.deps.db(table).where({ id }).first();

const DELETED = 'that was deleted is disabled';

/** What happens to a webhook after the backup, and what it is after the restore; by title. */
const WEBHOOKS: Record<string, { end(id: string): Promise<unknown>; after: object }> = {
  'as it was stays enabled': {
    end: (id) => root.put(`/api/webhooks/${id}`, { description: 'changed' }).expect(200),
    after: { enabled: true, description: '' },
  },
  'with a replaced secret has the present one': {
    end: (id) => root.post(`/api/webhooks/${id}/rotate-secret`, {}).expect(200),
    after: { enabled: true },
  },
  'that was disabled stays so': {
    end: (id) => root.put(`/api/webhooks/${id}`, { enabled: false }).expect(200),
    after: { enabled: false, disabledReason: 'request' },
  },
  'whose endpoint was removed stays disabled': {
    end: (id) =>
      app.deps
        .db('webhooks')
        .where({ id })
        .update({ enabled: false, disabled_at: new Date(), disabled_reason: 'endpoint_removed' }),
    after: { enabled: false, disabledReason: 'endpoint_removed' },
  },
  [DELETED]: {
    end: (id) => root.delete(`/api/webhooks/${id}`).expect(204),
    after: { enabled: false, disabledReason: 'request' },
  },
  'whose row was deleted is disabled': {
    async end(id) {
      const { db } = app.deps;
      await db('deliveries').where({ webhook_id: id }).del();
      await db('webhooks').where({ id }).del();
    },
    after: { enabled: false, disabledReason: 'request' },
  },
  'that got another URL has that of the backup, and is disabled': {
    end: (id) => root.put(`/api/webhooks/${id}`, { endpointUrl: url('other') }).expect(200),
    after: { enabled: false },
  },
};

const secretsOf = (webhook: Record<string, unknown> | undefined) => ({
  secret: webhook?.secret,
  previous_secret: webhook?.previous_secret,
});

const ids: Record<string, string> = {};
const secrets: Record<string, string> = {};
const archived: Record<string, Record<string, unknown>> = {};
const present: Record<string, Record<string, unknown> | undefined> = {};
let newer: WebhookRecord;
let validation: Validation;
let again: Validation;
let paused: ScheduleRecord;
let deleted: ScheduleRecord;
beforeAll(async () => {
  const register = (name: string) =>
    root
      .post<WebhookRecord>('/api/webhooks', {
        endpointUrl: url(name),
        eventTypes: ['inventory.site.created'],
      })
      .expect(201);
  for (const [n, title] of Object.keys(WEBHOOKS).entries()) {
    const { id, secret } = await register(`hook-${n}`);
    ids[title] = id;
    secrets[title] = secret;
    archived[title] = await row('webhooks', id);
  }
  const schedule = (name: string) =>
    root
      .post<ScheduleRecord>('/api/schedules', {
        name,
        cronExpression: '0 3 1 1 *',
        jobType: 'core.echo',
        payload: {},
      })
      .expect(201);
  [paused, deleted] = [await schedule('paused'), await schedule('deleted')];
  const { id: backupId } = await backupCreator(() => root)({
    mode: 'partial',
    sections: ['webhooks', 'schedules'],
  });
  for (const [title, id] of Object.entries(ids)) {
    await WEBHOOKS[title]?.end(id);
    present[title] = await row('webhooks', id);
  }
  newer = await register('newer');
  await root.post(`/api/schedules/${paused.id}/pause`, { reason: 'does harm' }).expect(200);
  await root.delete(`/api/schedules/${deleted.id}`).expect(204);
  const validate = () => restoreValidator(() => root)({ backupId });
  validation = await validate();
  await restorer(() => root)({ backupId, planHash: validation.planHash });
  again = await validate();
});

test.each(Object.entries(WEBHOOKS))('a webhook %s', async (title, { after }) => {
  const id = ids[title] ?? '';
  const n = Object.keys(WEBHOOKS).indexOf(title);
  expect(await readWebhook(id)).toMatchObject({ ...after, endpointUrl: url(`hook-${n}`) });
  const { secret, previous_secret } = await row('webhooks', id);
  // What was deleted has no secret any more.
  const now = present[title];
  expect({ secret, previous_secret }).toMatchObject(
    secretsOf(now?.deleted_at === null ? now : archived[title]),
  );
});

test('a webhook that was deleted sends again, once it is enabled, with the secret of the backup', async () => {
  await root.put(`/api/webhooks/${ids[DELETED]}`, { enabled: true }).expect(200);
  await root.post('/api/inventory/sites', { name: 'after' }).expect(201);
  const path = `/hook-${Object.keys(WEBHOOKS).indexOf(DELETED)}`;
  const [request] = await eventually(
    () => sink.requestsTo(path),
    (all) => all.length > 0,
  );
  expect(verifyMessage(secrets[DELETED] ?? '', request)).toMatchObject({
    type: 'inventory.site.created',
  });
});

test('a webhook that the restore deletes keeps no secret', async () => {
  await root.get(`/api/webhooks/${newer.id}`).expect(404);
  expect(await row('webhooks', newer.id)).toMatchObject({ secret: '', previous_secret: null });
});

test('a schedule that was paused stays paused, and one that was deleted runs again', async () => {
  const read = ({ id }: ScheduleRecord) =>
    root.get<ScheduleRecord>(`/api/schedules/${id}`).expect(200);
  expect(await read(paused)).toMatchObject({ state: 'paused', pauseReason: 'does harm' });
  expect(await read(deleted)).toMatchObject({ state: 'active' });
});

test('the preview counts what stays disabled, and another restore would change nothing', () => {
  const warnings = validation.warnings.map(({ code, table, message }) => [
    `${code} ${table}`,
    Number.parseInt(message),
  ]);
  expect(warnings).toEqual([
    ['records_deleted webhooks', 1],
    ['not_enabled webhooks', 5],
    ['not_enabled schedules', 1],
  ]);
  expect(again.preview.counts).toMatchObject({ created: 0, changed: 0, deleted: 0 });
});
