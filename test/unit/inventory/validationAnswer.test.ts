import { describe, expect, test } from '@jest/globals';
import { validationAnswer } from '../../../api/inventory/validationAnswer.ts';
import type { BatchValidation, Validation } from '../../support/inventory.ts';
import type { Planned } from '../../../domain/inventory/planning.ts';

const NEW_ID = `reg_${'0'.repeat(26)}`;

const plan = (part: Partial<Planned>): Planned => ({
  resource: 'regions',
  operation: 'create',
  pointsInto: 'record',
  candidateRecord: { id: NEW_ID, name: 'r', parentId: NEW_ID, version: 1 },
  ...{ errors: [], conflicts: [], warnings: [], effects: [], unchanged: false },
  ...{ presentScopes: [], requiredScopes: [], revoked: [], denied: [] },
  subject: { resource: 'regions', id: NEW_ID, before: null, after: { id: NEW_ID, version: 1 } },
  ...part,
});

const answer = (planned: Planned[], isBatch = true) =>
  validationAnswer('alice', planned, { isBatch, signal: new AbortController().signal });

const finding = { code: 'x', message: 'is wrong' };
const conflict = { ...finding, resource: 'regions', id: NEW_ID };

describe('the answer to a validation', () => {
  test('shows no id of a record that does not exist yet', async () => {
    const changes = [{ field: 'parentId', before: null, after: NEW_ID }];
    const effect = { resource: 'regions', reason: 'requested', label: 'r', changes } as const;
    const planned = plan({
      conflicts: [{ ...conflict, pointer: '/name' }],
      effects: [
        { ...effect, action: 'create', id: NEW_ID },
        { ...effect, action: 'update', id: 'reg_1', label: NEW_ID },
      ],
    });
    for (const isBatch of [true, false]) {
      const { json = '' } = await answer([planned], isBatch);
      expect(json).not.toContain(NEW_ID);
    }
    const { effects, candidateRecord } = JSON.parse(
      (await answer([planned], false)).json ?? '',
    ) as Validation;
    expect(candidateRecord).toEqual({ name: 'r', parentId: null });
    expect(effects.map(({ id, label }) => [id, label])).toEqual([
      [null, 'r'],
      ['reg_1', 'new'],
    ]);
  });

  test('points to the mutation and the field', async () => {
    const { status, json = '' } = await answer([
      plan({}),
      plan({ errors: [{ ...finding, pointer: '' }], warnings: [{ ...finding, pointer: null }] }),
      plan({ conflicts: [{ ...conflict, pointer: '/name' }] }),
    ]);
    expect(status).toBe(400);
    const { validation, results } = JSON.parse(json) as BatchValidation;
    expect(validation.valid).toBe(false);
    expect(validation.errors.map(({ pointer }) => pointer)).toEqual(['/mutations/1/record']);
    expect(validation.warnings.map(({ pointer }) => pointer)).toEqual(['/mutations/1']);
    expect(validation.conflicts.map(({ pointer }) => pointer)).toEqual([
      '/mutations/2/record/name',
    ]);
    expect(results.map((each) => each.validation.valid)).toEqual([true, false, false]);
  });

  test('is bounded as it is sent, in bytes and with each finding twice', async () => {
    const wrong = { ...finding, message: 'ü'.repeat(1_048_576), pointer: '/name' };
    const withErrors = (count: number) => plan({ errors: Array<typeof wrong>(count).fill(wrong) });
    expect((await answer([withErrors(3)], false)).status).toBe(400);
    expect((await answer([withErrors(1)])).status).toBe(400);
    await expect(answer([withErrors(2)])).rejects.toMatchObject({ code: 'limit_reached' });
    await expect(answer([withErrors(4)], false)).rejects.toMatchObject({ code: 'limit_reached' });
  });

  test('lets other work run while it is made', async () => {
    const record = { note: 'x'.repeat(700_000) };
    let turns = 0;
    let isMade = false;
    const count = () => {
      if (isMade) return;
      turns++;
      setImmediate(count);
    };
    setImmediate(count);
    await answer(Array.from({ length: 10 }, () => plan({ candidateRecord: record })));
    isMade = true;
    expect(turns).toBeGreaterThan(1);
  });
});
