import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { createTokenKeeper } from '../../../services/auth/apiTokens/keeper.ts';
import { createWatchRunners } from '../../../services/runners/watch.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { createToken } from '../../support/tokens.ts';
import { admin, createUser } from '../../support/users.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
});
afterAll(() => app.stop());

const signal = () => new AbortController().signal;

/** From now on PostgreSQL refuses every change of a row. */
const spoil = (table: string, id: string) =>
  app.deps.db.raw(`
    CREATE FUNCTION refuse_${table}() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'spoiled'; END $$;
    CREATE TRIGGER refuse BEFORE UPDATE ON ${table} FOR EACH ROW WHEN (OLD.id = '${id}')
      EXECUTE FUNCTION refuse_${table}()`);

const eventsOf = (id: string) =>
  app.deps.db('events').where({ subject_id: id }).orderBy('id').pluck('type');

/** One of two records that are due fails always: the other one gets its turn. */
test('a token that cannot be changed keeps no other from being reported', async () => {
  const owner = await createUser(app, 'operator');
  const [spoiled, other] = [await createToken(app, owner), await createToken(app, owner)];
  const soon = new Date(Date.now() + 86_400_000);
  await app.deps.db('tokens').whereIn('id', [spoiled.id, other.id]).update({ expires_at: soon });
  await spoil('tokens', spoiled.id);
  await createTokenKeeper(app.deps)(signal());
  expect([await eventsOf(spoiled.id), await eventsOf(other.id)]).toEqual([[], ['token.expiring']]);
});

test('a job that cannot be changed keeps no other from being reported', async () => {
  const { db } = app.deps;
  const waiting = async () => {
    const { id } = await admin(app)
      .post<JobRecord>('/api/jobs', { type: 'core.echo', payload: {} })
      .expect(201);
    const created_at = new Date(Date.now() - 600_000);
    await db('jobs').where({ id }).update({ status: 'queued', pool: 'nowhere', created_at });
    return id;
  };
  const [spoiled, other] = [await waiting(), await waiting()];
  await spoil('jobs', spoiled);
  await createWatchRunners(app.deps)(signal());
  expect([await eventsOf(spoiled), await eventsOf(other)]).toEqual([
    ['job.created'],
    ['job.created', 'job.waiting'],
  ]);
});
