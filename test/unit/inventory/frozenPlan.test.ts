import { expect, test } from '@jest/globals';
import { freezePlan, planDifference } from '../../../domain/inventory/frozenPlan.ts';
import type { Planned } from '../../../domain/inventory/planning.ts';
import type { Row } from '../../../domain/inventory/resource.ts';
import type { PlannedChange } from '../../../domain/inventory/planSnapshot.ts';
import { plannedChange } from '../../support/planned.ts';

const t = { tenantId: 't' };
const row = (id: string, overrides: object = {}): Row => ({
  id,
  version: 3,
  name: id,
  tenantId: 't',
  parentId: null,
  createdAt: 'then',
  ...overrides,
});
const planned = (changes: PlannedChange[]): Planned[] =>
  changes.map((change) => {
    const { resource, id } = change;
    return plannedChange(change, [
      { action: 'create', resource, id, label: id, reason: 'requested', changes: [] },
    ]);
  });
const outcome = (...changes: PlannedChange[]) => ({ planned: planned(changes), changes });
const created = (id: string, overrides: object = {}): PlannedChange => ({
  resource: 'regions',
  id,
  before: null,
  after: row(id, { name: 'n', ...overrides }),
});
const updated = (overrides: object, version = 3): PlannedChange => ({
  resource: 'regions',
  id: 'reg_b',
  before: row('reg_b', { version }),
  after: row('reg_b', { version: version + 1, ...overrides }),
});

test('new ids, times and the order of records do not change a frozen plan', () => {
  const first = outcome(created('reg_1'), updated({ parentId: 'reg_1' }));
  const second = {
    planned: planned([created('reg_2'), updated({ parentId: 'reg_2' })]),
    changes: [
      updated({ parentId: 'reg_2', updatedAt: 'now' }),
      created('reg_2', { createdAt: 'now' }),
    ],
  };
  expect(freezePlan(second)).toEqual(freezePlan(first));
  expect(planDifference(freezePlan(first), second, t)).toBeNull();
  expect(JSON.stringify(freezePlan(first))).not.toContain('reg_1');
  expect(freezePlan(first).effects.map(({ id, version }) => [id, version])).toEqual([
    ['new:1', null],
    ['reg_b', 3],
  ]);
  const reordered = outcome(
    updated({ name: 'x' }),
    created('reg_z'),
    created('reg_a', { name: 'm' }),
  );
  expect(
    freezePlan(reordered).effects.map(({ id, changes }) => [
      id,
      changes.find(({ field }) => field === 'name')?.after,
    ]),
  ).toEqual([
    ['reg_b', 'x'],
    ['new:1', 'n'],
    ['new:2', 'm'],
  ]);
});

test.each([
  ['a version', outcome(created('reg_1'), updated({ name: 'x' }, 4))],
  ['a value', outcome(created('reg_1'), updated({ name: 'y' }))],
  [
    'another record under the same id',
    outcome(created('reg_1'), {
      resource: 'regions',
      id: 'reg_b',
      before: row('reg_b', { createdAt: 'later' }),
      after: row('reg_b', { version: 4, name: 'x', createdAt: 'later' }),
    }),
  ],
  ['a field', outcome(created('reg_1'), updated({ name: 'x', parentId: 'reg_1' }))],
  ['a record less', outcome(created('reg_1'))],
  ['a record more', outcome(created('reg_1'), created('reg_3'), updated({ name: 'x' }))],
  [
    'another action',
    outcome(created('reg_1'), {
      resource: 'regions',
      id: 'reg_b',
      before: row('reg_b'),
      after: null,
    }),
  ],
  [
    'a new record with another value',
    outcome(created('reg_1', { name: 'other' }), updated({ name: 'x' })),
  ],
])('%s makes a difference', (_, now) => {
  const approved = freezePlan(outcome(created('reg_1'), updated({ name: 'x' })));
  expect(planDifference(approved, outcome(created('reg_9'), updated({ name: 'x' })), t)).toBeNull();
  expect(planDifference(approved, now, t)?.effects).toHaveLength(1);
});

test('an invalid plan differs by its errors only', () => {
  const now = outcome(updated({ name: 'x' }));
  now.planned[0]?.errors.push({ pointer: '/name', code: 'c', message: 'm' });
  expect(planDifference(freezePlan(outcome(created('reg_1'))), now, t)).toEqual({
    errors: [{ pointer: '/mutations/0/record/name', code: 'c', message: 'm' }],
    conflicts: [],
    effects: [],
  });
});

test.each([
  [{ tenantId: 't' }, true],
  [{ tenantId: 't', siteId: 's' }, true],
  [{ tenantId: 't', siteId: 's', deviceId: 'd' }, true],
  [{ tenantId: 'platform' }, true],
  [{ tenantId: 't', siteId: 'other' }, false],
  [{ tenantId: 't', siteId: 's', deviceId: 'other' }, false],
  [{ tenantId: 'other' }, false],
  [{ tenantId: 'other', siteId: 's' }, false],
])('the same effects outside the scope of the request differ: %j', (scope, isInside) => {
  const now = outcome(updated({ name: 'x' }));
  now.planned[0]?.requiredScopes.push({ tenantId: 't', siteId: 's', deviceId: 'd' });
  expect(planDifference(freezePlan(now), now, scope)?.errors ?? []).toMatchObject(
    isInside ? [] : [{ pointer: '/mutations/0', code: 'outside_scope' }],
  );
});

test('a new record without a label is labelled with its placeholder', () => {
  const cable: PlannedChange = {
    resource: 'cables',
    id: 'cab_1',
    before: null,
    after: { id: 'cab_1', version: 1, tenantId: 't', label: null },
  };
  expect(freezePlan(outcome(cable)).effects[0]).toMatchObject({ id: 'new:1', label: 'new:1' });
});
