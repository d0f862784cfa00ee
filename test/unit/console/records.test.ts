import { describe, expect, test } from '@jest/globals';
import { withGivenFields } from '../../../domain/inventory/plan.ts';
import { RESOURCES } from '../../../domain/inventory/resources/index.ts';
import { whyNotApply } from '../../../ui/areas/inventory/planState.ts';
import { labelOf } from '../../../ui/parts/names.ts';
import { shareOptions } from '../../../ui/parts/records/shares.ts';
import { changesOf } from '../../../ui/areas/inventory/recordChanges.ts';

/** The sites, as far as a form reads their description. */
const sites = {
  fields: Object.entries(RESOURCES.sites.fields).map(([name, field]) => ({ name, ...field })),
};

const before = {
  name: 'ams1',
  status: 'retired',
  address: 'Street 1',
  description: 'Old',
  tags: ['prod'],
  sharedWith: ['acme'],
  customFields: { owner: 'Ann', floor: 3 },
};

describe('the change that a form of a record sends', () => {
  const emptied = {
    name: 'ams1',
    customFields: { owner: undefined, floor: 3 },
  };

  test('has what clears the fields that were emptied', () => {
    expect(changesOf(sites, before, emptied)).toEqual({
      status: 'active',
      address: null,
      description: '',
      tags: [],
      sharedWith: [],
      customFields: { owner: null },
    });
  });

  test('has no null that the API takes for a field that is not given', () => {
    const record = changesOf(sites, before, emptied);
    const mutation = { resource: 'sites', operation: 'update', record };
    expect(withGivenFields(mutation).record).toEqual(record);
  });

  test('is empty when a field without a value is emptied', () => {
    const empty = { ...before, description: '', tags: [], address: null };
    const typed = { ...empty, description: undefined, tags: undefined, address: undefined };
    expect(changesOf(sites, empty, typed)).toEqual({});
  });
});

describe('a change', () => {
  const planned = (valid: boolean, effects: readonly object[]) => ({
    data: { validation: { valid } },
    effects,
    isOutdated: false,
    problem: null,
  });

  test('is saved if its plan is valid and changes something', () => {
    expect(whyNotApply(planned(true, [{}]), false)).toBeUndefined();
    expect(whyNotApply(planned(true, []), false)).toBe('It would change nothing.');
    expect(whyNotApply(planned(false, [{}]), false)).toMatch(/errors/);
  });
});

test('a record is shared with every tenant, with one that is found, or with any by its id', () => {
  const red = { id: 'red', label: 'Red' };
  const idsFor = (typed: string, found = [red]) => shareOptions(typed, found).map(({ id }) => id);
  expect(idsFor('')).toEqual(['*', 'red']);
  expect(idsFor('*', [])).toEqual(['*']);
  expect(idsFor('red')).toEqual(['red']);
  expect(idsFor('blue', [])).toEqual(['blue']);
  expect(idsFor('no id', [])).toEqual([]);
  expect(labelOf({ labels: {} }, '*', 'tenants')).toBe('Every tenant');
});
