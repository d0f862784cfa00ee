import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Approval } from '../../../db/models/Approval.ts';
import { covers, scopeOf } from '../../../domain/access/scope.ts';
import { scopeOfApproval } from '../../../domain/approvals/records.ts';
import { approve, createRequest } from '../../support/approvals.ts';
import { propertyRuns } from '../../support/effort.ts';
import {
  ALL,
  applyMove,
  insertWorld,
  modelOf,
  movingTargets,
  readerWith,
  scopeIn,
  type ModelRecord,
} from '../../support/movingTargets.ts';
import { expectProblem } from '../../support/problem.ts';
import { withTargets } from '../../support/targets.ts';

const fixture = withTargets();

const OPEN = ['pending/none', 'approved/queued', 'approved/running'];
const CLOSED = ['rejected/none', 'approved/none', 'approved/succeeded'];

/** The columns of one of these states. */
function stateOf(states: readonly string[], i: number) {
  const [status, execution] = (states[i % states.length] ?? '').split('/');
  return {
    status,
    execution,
    approval_count: status === 'approved' ? 1 : 0,
    closed_at: status === 'pending' ? null : new Date(),
  };
}

test('an open request follows its device, and a closed one stays, also through a restore', async () => {
  const {
    db,
    approvals: { approvals: service },
  } = fixture.app.deps;
  const { id: templateId } = await createRequest(fixture.admin('platform'));
  const row = await db('approvals').where({ id: templateId }).first();
  // Whatever the state is, constraints of its other columns are met.
  const template = {
    ...row,
    job_type: 'core.echo',
    job_id: 'job_1',
    payload: JSON.stringify(row.payload),
    authority: JSON.stringify(row.authority),
    requester_names: JSON.stringify(row.requester_names),
  };
  let seen = 0;

  await fc.assert(
    fc.asyncProperty(movingTargets, async ({ start, given, moves, granted }) => {
      const now = structuredClone(start);
      await db('approvals').whereNot({ id: templateId }).delete();
      await insertWorld(db, now);
      const model = modelOf({ start, given });
      await db('approvals').insert(
        model.map((each, i) => ({
          ...template,
          ...stateOf(OPEN, i),
          id: each.id,
          tenant_id: each.tenant,
          site_id: each.site,
          device_id: each.device,
        })),
      );
      // Some are closed in the middle: they stay where they are then.
      const ending = model.filter(({ ended }) => ended);
      for (const each of ending) each.ended = false;
      for (const [i, each] of moves.entries()) {
        await close(i, ending[i]);
        await applyMove(db, now, model, each);
      }
      for (const [i, each] of ending.entries()) await close(i, each);

      async function close(at: number, each: ModelRecord | undefined) {
        if (each && !each.ended) {
          each.ended = true;
          await db('approvals').where({ id: each.id }).update(stateOf(CLOSED, at));
        }
      }

      const caller = readerWith(granted);
      const scope = scopeOf(caller.rights, 'workflow:read');
      const expected = model.filter((each) => covers(scope, scopeIn(now, each)));
      const scopes = model.map((each) => [each.id, scopeIn(now, each)]);
      const check = async () => {
        const all = await Approval.query(db).whereNot({ id: templateId }).orderBy('id');
        expect(all.map((each) => [each.id, scopeOfApproval(each)])).toEqual(scopes);
        const { items } = await service.list(caller, {}, ALL);
        expect(items.map(({ approval }) => approval.id).sort()).toEqual(
          expected.map(({ id }) => id).sort(),
        );
        for (const { approval } of items) {
          expect(covers(scope, scopeOfApproval(approval))).toBe(true);
          await service.find(caller, approval.id);
        }
      };
      await check();
      await db.raw('SELECT recalculate_approval_scopes()');
      await check();
      // A restore inserts the rows without what is derived.
      const rows = await db('approvals').whereNot({ id: templateId }).delete().returning('*');
      await db('approvals').insert(
        rows.map((each: object) => ({
          ...each,
          payload: template.payload,
          authority: template.authority,
          requester_names: template.requester_names,
          scope_site_id: null,
          scope_device_id: null,
        })),
      );
      await check();
      seen += expected.length;
    }),
    { numRuns: propertyRuns(60), includeErrorInReport: true },
  );
  expect(seen).toBeGreaterThan(20);
}, 60_000);

test('the people of the new site decide on a request at a device that has moved', async () => {
  const estate = await fixture.estate('requests');
  const [atA, atB] = [
    await fixture.user('approver', { siteId: estate.siteA }),
    await fixture.user('approver', { siteId: estate.siteB }),
  ];
  const root = fixture.admin(estate.tenant);
  const created = await createRequest(root, { deviceId: estate.deviceA });
  expect(created).toMatchObject({ siteId: estate.siteA, deviceId: estate.deviceA });
  await expectProblem(approve(atB, created.id), 404, 'not_found');
  await root
    .put(`/api/inventory/devices/${estate.deviceA}`, { siteId: estate.siteB, name: 'moved' })
    .expect(200);
  await expectProblem(approve(atA, created.id), 404, 'not_found');
  const found = async (siteId: string) =>
    (await root.get<{ items: { id: string }[] }>(`/api/workflows?siteId=${siteId}`).expect(200))
      .items.length;
  expect([await found(estate.siteA), await found(estate.siteB)]).toEqual([0, 1]);
  expect(await approve(atB, created.id).expect(200)).toMatchObject({
    siteId: estate.siteB,
    status: 'approved',
    contentHash: created.contentHash,
  });
  const { db } = fixture.app.deps;
  const events = await db('events')
    .where({ subject_id: created.id, type: 'workflow.moved' })
    .select('tenant_id', 'data');
  expect(events).toMatchObject([
    {
      tenant_id: created.tenantId,
      data: { fromSiteId: estate.siteA, toSiteId: estate.siteB, status: 'pending' },
    },
  ]);
  const entries = await db('audit_entries').where({
    subject_id: created.id,
    action: 'workflow.move',
  });
  expect(entries).toMatchObject([
    { before: { siteId: estate.siteA }, after: { siteId: estate.siteB } },
  ]);
});
