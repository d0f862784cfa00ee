import { expect, test } from '@jest/globals';
import type { TokenResponse } from '../../../api/auth/schemas.ts';
import type { Log } from '../../../platform/log.ts';
import { createClockCheck } from '../../../services/shared/clockCheck.ts';
import { withClockAhead } from '../../support/clock.ts';
import { createUser } from '../../support/users.ts';
import { withWebhookReceiver } from '../../support/webhooks.ts';

const { fixture, asNewTenant, register, createJob, waitForDelivery } = withWebhookReceiver();

test('a refresh that is repeated at a process whose clock is ahead is no theft', async () => {
  const { refreshToken } = await createUser(fixture.app, 'viewer');
  const refresh = () =>
    fixture.app.client
      .as({ token: null })
      .post<TokenResponse>('/api/auth/refresh', { refreshToken })
      .expect(200);
  await refresh();
  await withClockAhead(60_000, refresh);
});

test('a webhook of a process whose clock is ahead gets the events of the others', async () => {
  const client = asNewTenant();
  const created = await withClockAhead(60_000, () => register(client, '/created'));
  await createJob(client);
  await waitForDelivery(client, created.id);

  const other = asNewTenant();
  const { id } = await register(other, '/enabled', { enabled: false });
  await withClockAhead(60_000, () =>
    other.put(`/api/webhooks/${id}`, { enabled: true }).expect(200),
  );
  await createJob(other);
  await waitForDelivery(other, id);
});

test('a webhook of a process whose clock is behind gets the events of this process', async () => {
  const client = asNewTenant();
  await withClockAhead(-60_000, async () => {
    const { id } = await register(client, '/behind', { eventTypes: ['webhook.created'] });
    await waitForDelivery(client, id);
  });
});

test('a clock that differs from that of the database is logged, and that it is right again', async () => {
  const lines: string[] = [];
  const log = {
    warn: (_fields: object, line: string) => lines.push(line),
    info: (line: string) => lines.push(line),
  } as unknown as Log;
  const check = createClockCheck({ db: fixture.app.deps.db, log });
  await check();
  expect(lines).toEqual([]);
  for (const ms of [60_000, 60_000, 0, -60_000]) await withClockAhead(ms, check);
  expect(lines).toEqual([
    expect.stringContaining('is 60 s ahead of that of PostgreSQL'),
    expect.stringContaining('again'),
    expect.stringContaining('is 60 s behind that of PostgreSQL'),
  ]);
});
