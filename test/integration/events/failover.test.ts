import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import type { ProblemBody } from '../../support/client.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { openEventStream } from '../../support/eventStream.ts';
import { eventually } from '../../support/eventually.ts';
import { createUser } from '../../support/users.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.stop());

const createJob = () =>
  app.client.post<JobRecord>('/api/jobs', { type: 'core.echo', payload: {} }).expect(201);

const readHead = async (): Promise<number> => {
  const [head] = await app.deps.db('event_head').pluck('sequence');
  return Number(head);
};

/** Breaks the connection that listens, as a failover does. */
const breakListener = () =>
  app.deps.db.raw(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE application_name LIKE 'holdfast-changes%' AND datname = current_database()`,
  );

/** Removes the events after a sequence, and what counts them: the commits are lost. */
const loseAfter = (sequence: number) =>
  app.deps.db.transaction(async (trx) => {
    await trx('event_head').update({ sequence });
    await trx('events').where('sequence', '>', sequence).delete();
  });

async function openStream() {
  const stream = await openEventStream(app.client.as({ tenant: 'platform' }), '/api/events?follow');
  await eventually(stream.lastId, (id) => id !== undefined);
  return stream;
}

/** A stream that has read all events, of which the last ones are lost then. */
async function streamOfLost() {
  const stream = await openStream();
  const before = await readHead();
  await createJob();
  const head = await eventually(readHead, (sequence) => sequence >= before + 3);
  await eventually(stream.lastId, (id) => Number(id) >= head);
  await loseAfter(before);
  return { ...stream, head };
}

const problemsOf = ({ data }: { data<T>(event: string): T[] }) => data<ProblemBody>('error');

test('a stream that has sent lost events ends, and says so', async () => {
  const stream = await streamOfLost();
  await breakListener();
  expect(await stream.ended).toBe('ended');
  expect(problemsOf(stream)).toMatchObject([{ code: 'events_purged' }]);

  // What follows under the same sequences is sent to those who follow from now on.
  const next = await openStream();
  await createJob();
  await eventually(
    () => next.data('event'),
    (events) => events.length >= 3,
  );
  next.leave();
});

test('so does one whose position other events have by then', async () => {
  const stream = await streamOfLost();
  while ((await readHead()) <= stream.head) {
    const before = await readHead();
    await createJob();
    await eventually(readHead, (sequence) => sequence >= before + 3);
  }
  await breakListener();
  expect(await stream.ended).toBe('ended');
});

/** The next event is published by a primary that was promoted. */
const promote = () => app.deps.db('event_head').update({ timeline: 'before' });

test('lost events are noticed although others were published by the new primary', async () => {
  const stream = await streamOfLost();
  await promote();
  await createJob();
  await eventually(readHead, (sequence) => sequence > stream.head);
  const poll = await app.client.as({ tenant: 'platform' }).get(`/api/events?after=${stream.head}`);
  expect(poll).toMatchObject({ status: 410, body: { code: 'events_purged' } });
  await breakListener();
  expect(await stream.ended).toBe('ended');
  expect(problemsOf(stream)).toMatchObject([{ code: 'events_purged' }]);
});

test('a failover that has lost nothing ends no stream', async () => {
  const stream = await openStream();
  await createJob();
  await eventually(
    () => stream.data('event'),
    (events) => events.length >= 3,
  );
  await promote();
  await breakListener();
  await createJob();
  await eventually(
    () => stream.data('event'),
    (events) => events.length >= 6,
  );
  stream.leave();
});

test('a stream goes on after a connection was lost without events', async () => {
  const stream = await openStream();
  await createJob();
  await breakListener();
  await createJob();
  const isOver = (events: { type: string }[]) =>
    events.filter(({ type }) => type === 'job.succeeded').length >= 2;
  await eventually(() => stream.data<{ type: string }>('event'), isOver);
  stream.leave();
});

test('rights of a version that is lost are forgotten', async () => {
  const { client } = await createUser(app, 'viewer');
  await client.get('/api/jobs').expect(200);
  const { db } = app.deps;
  const [version] = await db('access_state').pluck('version');
  await db.transaction(async (trx) => {
    await trx('grants').where({ role_id: 'viewer' }).delete();
    await trx('access_state').update({ version });
  });
  await breakListener();
  await eventually(
    () => client.get('/api/jobs'),
    ({ status }) => status === 403,
  );
});
