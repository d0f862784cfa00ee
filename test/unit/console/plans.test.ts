import { describe, expect, test } from '@jest/globals';
import {
  changeLine,
  driftsOf,
  allShown,
  countNotShown,
  groupEffects,
  notShownText,
  namesOf,
  rowsOf,
  type Effect,
} from '../../../ui/parts/plan/effects.ts';

const effect = (more: Partial<Effect>): Effect => ({
  action: 'update',
  resource: 'prefixes',
  id: 'pfx_1',
  label: '10.0.0.0/8',
  reason: 'requested',
  version: 1,
  changes: [],
  ...more,
});

describe('what a plan does', () => {
  const plan = (effects: readonly Effect[], more = {}) => ({
    effects,
    hiddenEffects: 0,
    jobType: 'inventory.apply',
    ...more,
  });

  test('is said in a line, what was requested first', () => {
    const effects = [
      effect({ id: 'pfx_2', label: '10.1.0.0/16', reason: 'reparented' }),
      effect({ id: 'pfx_3', label: '10.2.0.0/16', reason: 'reparented' }),
      effect({ id: 'new:1', action: 'create', version: null }),
    ];
    expect(changeLine(plan(effects))).toBe('Creates prefix 10.0.0.0/8, changes 2 prefixes');
  });

  test('names what the reader may not read, and jobs', () => {
    expect(changeLine(plan([effect({})], { hiddenEffects: 2 }))).toBe(
      'Changes prefix 10.0.0.0/8, 2 records that you may not read',
    );
    expect(changeLine(plan([], { hiddenEffects: null }))).toBe(
      'Changes records that you may not read',
    );
    expect(changeLine(plan([effect({})], { jobType: 'core.echo' }))).toBe('Runs a job core.echo');
    expect(changeLine(plan([], { jobType: null }))).toBe('Asks for a decision; nothing runs');
  });

  test('says exactly how much of it is not shown where it is decided on', () => {
    const many = Array.from({ length: 250 }, (_, at) => effect({ id: `pfx_${at}` }));
    const effects = [...many, effect({ resource: 'devices' })];
    const notShown = countNotShown(effects, {});
    expect(notShown).toBe(150);
    expect(notShownText(plan(effects), notShown)).toBe('150 of 251 records are not shown.');
    expect(countNotShown(effects, { prefixes: 249 })).toBe(1);
    expect(countNotShown(effects, allShown(effects))).toBe(0);
    expect(notShownText(plan(effects), 0)).toBeUndefined();
    expect(notShownText(plan(effects, { hiddenEffects: 2 }), 150)).toBe(
      '152 of 253 records are not shown; 2 of them you may not read.',
    );
    expect(notShownText(plan([effect({})], { hiddenEffects: 1 }), 0)).toBe(
      '1 of 2 records is not shown: you may not read it.',
    );
    expect(notShownText(plan([], { hiddenEffects: null }), 0)).toMatch(/not shown/);
    expect(
      notShownText(plan([], { hiddenEffects: null, jobType: 'core.echo' }), 0),
    ).toBeUndefined();
  });

  test('is grouped by resource, with counts', () => {
    const groups = groupEffects([
      effect({ action: 'create', id: 'new:1' }),
      effect({ resource: 'devices', action: 'delete' }),
      effect({}),
    ]);
    expect(groups.map(({ resource, counts }) => [resource, counts])).toEqual([
      ['prefixes', 'creates 1, changes 1'],
      ['devices', 'deletes 1'],
    ]);
  });

  test('has a row for each field with a value, and for each custom field', () => {
    const changes = [
      { field: 'cidr', before: null, after: '10.0.0.0/8' },
      { field: 'tags', before: null, after: [] },
      { field: 'description', before: null, after: '' },
      { field: 'customFields', before: { a: 1, b: 2 }, after: { b: 2, c: 3 } },
    ];
    const custom = [
      { field: 'customFields.a', label: 'a', before: 1, after: null },
      { field: 'customFields.c', label: 'c', before: null, after: 3 },
    ];
    const cidr = { field: 'cidr', before: null, after: '10.0.0.0/8' };
    expect(rowsOf({ action: 'create', changes })).toEqual([cidr, ...custom]);
    expect(rowsOf({ action: 'update', changes }).map(({ field }) => field)).toEqual([
      'cidr',
      'tags',
      'description',
      'customFields.a',
      'customFields.c',
    ]);
  });

  test('names the records that it creates itself', () => {
    const names = namesOf({
      effects: [effect({ id: 'new:1', action: 'create' })],
      labels: { pfx_9: '10.9.0.0/16' },
      people: { usr_1: { displayName: 'Alice' } },
    });
    expect(names.labels?.planned).toEqual({ 'new:1': '10.0.0.0/8 (new)', pfx_9: '10.9.0.0/16' });
    expect(names.people).toEqual({ usr_1: { displayName: 'Alice' } });
  });
});

describe('what a plan would do otherwise now', () => {
  const drift = (approved: Effect | null, now: Effect | null) =>
    driftsOf({ effects: [{ approved, now }] }).map(({ text, since, rows }) => ({
      text,
      since,
      rows: rows.map(({ field, before, after }) => [field, before, after]),
    }));

  test('is a newer version of the record, a missing, another or one more change', () => {
    expect(drift(effect({}), effect({ version: 2 }))).toEqual([
      { text: 'was changed since', since: 1, rows: [] },
    ]);
    expect(drift(effect({}), null)).toMatchObject([{ text: 'would not change any more' }]);
    expect(drift(null, effect({ action: 'delete' }))).toMatchObject([
      { text: 'would be deleted too' },
    ]);
    expect(drift(effect({ action: 'create' }), effect({}))).toMatchObject([
      { text: 'would be changed, not created' },
    ]);
  });

  test('compares the values that would be written', () => {
    const to = (after: string) => ({ changes: [{ field: 'name', before: 'a', after }] });
    expect(drift(effect(to('b')), effect({ ...to('c'), version: 2 }))).toEqual([
      { text: 'was changed, and would become', since: 1, rows: [['name', 'b', 'c']] },
    ]);
  });
});
