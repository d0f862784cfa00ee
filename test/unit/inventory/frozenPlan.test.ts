import { expect, test } from '@jest/globals';
import { freeze, planDifference } from '../../../domain/inventory/frozenPlan.ts';
import type { Planned } from '../../../domain/inventory/planning.ts';
import type { Row } from '../../../domain/inventory/resource.ts';
import type { Change } from '../../../domain/inventory/planSnapshot.ts';

const row = (id: string, more: object = {}): Row => ({
  id,
  version: 3,
  name: id,
  tenantId: 't',
  parentId: null,
  createdAt: 'then',
  ...more,
});
const planned = (changes: Change[]): Planned[] =>
  changes.map(({ resource, id, before, after }) => ({
    resource,
    operation: after ? (before ? 'update' : 'create') : 'delete',
    candidateRecord: {},
    errors: [],
    conflicts: [],
    warnings: [],
    companions: [],
    effects: [{ action: 'create', resource, id, label: id, reason: 'requested', changes: [] }],
    subject: { resource, id, before, after },
  }));
const outcome = (...changes: Change[]) => ({ planned: planned(changes), changes });
const made = (id: string, more: object = {}): Change => ({
  resource: 'regions',
  id,
  before: null,
  after: row(id, { name: 'n', ...more }),
});
const updated = (more: object, version = 3): Change => ({
  resource: 'regions',
  id: 'reg_b',
  before: row('reg_b', { version }),
  after: row('reg_b', { version: version + 1, ...more }),
});

test('a made-up id, the time and the order in which records were found make no difference', () => {
  const one = outcome(made('reg_1'), updated({ parentId: 'reg_1' }));
  const other = {
    planned: planned([made('reg_2'), updated({ parentId: 'reg_2' })]),
    changes: [
      updated({ parentId: 'reg_2', updatedAt: 'now' }),
      made('reg_2', { createdAt: 'now' }),
    ],
  };
  expect(freeze(other)).toEqual(freeze(one));
  expect(planDifference(freeze(one), other)).toBeNull();
  expect(JSON.stringify(freeze(one))).not.toContain('reg_1');
  expect(freeze(one).effects.map(({ id, version }) => [id, version])).toEqual([
    ['new:1', null],
    ['reg_b', 3],
  ]);
  const turned = outcome(updated({ name: 'x' }), made('reg_z'), made('reg_a', { name: 'm' }));
  expect(
    freeze(turned).effects.map(({ id, changes }) => [
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
  ['a version', outcome(made('reg_1'), updated({ name: 'x' }, 4))],
  ['a value', outcome(made('reg_1'), updated({ name: 'y' }))],
  [
    'another record under the same id',
    outcome(made('reg_1'), {
      resource: 'regions',
      id: 'reg_b',
      before: row('reg_b', { createdAt: 'later' }),
      after: row('reg_b', { version: 4, name: 'x', createdAt: 'later' }),
    }),
  ],
  ['a field', outcome(made('reg_1'), updated({ name: 'x', parentId: 'reg_1' }))],
  ['a record less', outcome(made('reg_1'))],
  ['a record more', outcome(made('reg_1'), made('reg_3'), updated({ name: 'x' }))],
  [
    'another action',
    outcome(made('reg_1'), { resource: 'regions', id: 'reg_b', before: row('reg_b'), after: null }),
  ],
  [
    'a new record with another value',
    outcome(made('reg_1', { name: 'other' }), updated({ name: 'x' })),
  ],
])('%s makes a difference', (_, now) => {
  const approved = freeze(outcome(made('reg_1'), updated({ name: 'x' })));
  expect(planDifference(approved, outcome(made('reg_9'), updated({ name: 'x' })))).toBeNull();
  expect(planDifference(approved, now)?.effects).toHaveLength(1);
});

test('a plan that is not valid is all that differs', () => {
  const now = outcome(updated({ name: 'x' }));
  now.planned[0]?.errors.push({ pointer: '/name', code: 'c', message: 'm' });
  expect(planDifference(freeze(outcome(made('reg_1'))), now)).toEqual({
    errors: [{ pointer: '/mutations/0/record/name', code: 'c', message: 'm' }],
    conflicts: [],
    effects: [],
  });
});

test('a record without a label has none that it will not have', () => {
  const cable: Change = {
    resource: 'cables',
    id: 'cab_1',
    before: null,
    after: { id: 'cab_1', version: 1, tenantId: 't', label: null },
  };
  expect(freeze(outcome(cable)).effects[0]).toMatchObject({ id: 'new:1', label: 'new:1' });
});
