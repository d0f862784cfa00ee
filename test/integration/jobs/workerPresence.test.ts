import { expect, test } from '@jest/globals';
import type { Knex } from '../../../db/core/knex.ts';
import { createIds } from '../../../platform/ids.ts';
import { createLog } from '../../../platform/log.ts';
import { createWorkerPresence } from '../../../services/jobs/workerPresence.ts';
import { withDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';

let db: Knex;
withDatabase((opened) => (db = opened));

test('a worker that polls offers its slots only while Temporal answers', async () => {
  let isReady = false;
  let asked = 0;
  const presence = createWorkerPresence({
    ...{ db, ids: createIds(), log: createLog('silent', false) },
    workerSlots: { activity: 3, delivery: 4 },
    jobTypes: { ownNames: () => ['core.echo'] },
    isWorkerRunning: () => true,
    isTemporalReady: () => (asked++, isReady),
    isCurrentVersion: () => true,
  });
  const offered = async (): Promise<number[]> => db('workers').pluck('activity_slots');
  presence.start();
  try {
    await eventually(
      () => asked,
      (times) => times > 1,
    );
    expect(await offered()).toEqual([]);
    isReady = true;
    await eventually(offered, (slots) => slots.length > 0);
    expect(await offered()).toEqual([3]);
  } finally {
    await presence.stop();
  }
  expect(await offered()).toEqual([]);
});
