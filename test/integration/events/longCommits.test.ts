import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { EventList } from '../../../api/events/schemas.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
});
afterAll(() => app.stop());

test('an event of a commit that took long is found by the time at which that began', async () => {
  const client = app.client.as({ tenant: 'long-commits' });
  const list = (query: string) => client.get<EventList>(`/api/events?after=0${query}`).expect(200);
  const began = [60, 10, 30];
  for (const _ of began)
    await client.post('/api/jobs', { type: 'core.echo', payload: {} }).expect(201);
  const { items } = await eventually(
    () => list(''),
    (all) => all.items.length === began.length,
  );
  const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000);
  for (const [i, minutes] of began.entries())
    await app.deps
      .db('events')
      .where({ id: items[i]?.id })
      .update({ created_at: minutesAgo(minutes) });
  const until = await list(`&until=${minutesAgo(20).toISOString()}`);
  expect(until.items.map(({ id }) => id)).toEqual([items[0]?.id, items[2]?.id]);
});
