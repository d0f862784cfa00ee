import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Job } from '../../../db/models/Job.ts';
import { covers, scopeOf } from '../../../domain/access/scope.ts';
import { createRequest } from '../../support/approvals.ts';
import { propertyRuns } from '../../support/effort.ts';
import { eventually } from '../../support/eventually.ts';
import {
  ALL,
  applyMove,
  insertWorld,
  modelOf,
  movingTargets,
  readerWith,
  scopeIn,
} from '../../support/movingTargets.ts';
import { withTargets, type Estate } from '../../support/targets.ts';
import { waitingForLock } from '../../support/waitingForLock.ts';

const fixture = withTargets();

test('a list of jobs is the union of the scopes of its reader, also after moves', async () => {
  const { db, jobs: service, access } = fixture.app.deps;
  const template = await fixture
    .admin('platform')
    .post<{ id: string }>('/api/jobs', { type: 'core.echo', payload: {} })
    .expect(201);
  const row: object = await db('jobs').where({ id: template.id }).first();
  let seen = 0;

  await fc.assert(
    fc.asyncProperty(movingTargets, async ({ start, given, moves, granted }) => {
      const now = structuredClone(start);
      await db('jobs').whereNot({ id: template.id }).delete();
      await insertWorld(db, now);
      const model = modelOf({ start, given });
      await db('jobs').insert(
        model.map((each) => ({
          ...row,
          id: each.id,
          tenant_id: each.tenant,
          slot: null,
          target_site_id: each.site,
          target_device_id: each.device,
        })),
      );
      await Job.query(db)
        .patch({ status: 'cancelled', finishedAt: new Date() })
        .whereIn(
          'id',
          model.filter(({ ended }) => ended).map(({ id }) => id),
        );
      for (const each of moves) await applyMove(db, now, model, each);
      const caller = readerWith(granted);
      const scope = scopeOf(caller.rights, 'job:read');
      const expected = model.filter((each) => covers(scope, scopeIn(now, each)));
      const check = async () => {
        const { items } = await service.list(caller, {}, ALL);
        expect(items.map(({ id }) => id).sort()).toEqual(expected.map(({ id }) => id).sort());
        for (const each of items) expect(access.holds(caller.rights, 'job:read', each)).toBe(true);
      };
      await check();
      await db.raw('SELECT recalculate_job_scopes()');
      await check();
      seen += expected.length;
    }),
    { numRuns: propertyRuns(60), includeErrorInReport: true },
  );
  expect(seen).toBeGreaterThan(20);
}, 60_000);

test.each([
  [
    'job',
    ({ tenant, deviceA }: Estate) =>
      fixture
        .admin(tenant)
        .post<{ siteId: string | null }>('/api/jobs', {
          type: 'test.device',
          payload: {},
          target: { kind: 'device', id: deviceA },
        })
        .expect(201),
  ],
  [
    'request',
    ({ tenant, deviceA }: Estate) => createRequest(fixture.admin(tenant), { deviceId: deviceA }),
  ],
])('a %s at a device waits for a write of its site and the device', async (_, create) => {
  const { db } = fixture.app.deps;
  const estate = await fixture.estate('locks');
  const trx = await db.transaction();
  await trx('sites').where({ id: estate.siteA }).update({ description: 'changed' });
  const created = create(estate);
  await eventually(
    () => waitingForLock(db, 'transactionid'),
    (pids) => pids.length > 0,
  );
  await trx('devices').where({ id: estate.deviceA }).update({ site_id: estate.siteB });
  await trx.commit();
  expect(await created).toMatchObject({ siteId: estate.siteB });
});
