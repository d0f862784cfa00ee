import { expect, test } from '@jest/globals';
import { conflictError, inRecord } from '../../../services/inventory/conflictError.ts';
import { plannedChange } from '../../support/planned.ts';

const conflict = (pointer: string | null) => ({
  ...plannedChange({ resource: 'ip-addresses', id: 'ip_1', before: null, after: null }),
  conflicts: [{ pointer, code: 'duplicate', message: 'exists', resource: null, id: null }],
});
const plans = [conflict('/address'), conflict(null)];
const pointersOf = (error: ReturnType<typeof conflictError>) =>
  error.extra.conflicts?.map(({ pointer }) => pointer);

test('conflicts of a batch are at its mutations', () => {
  expect(pointersOf(conflictError(plans))).toEqual(['/mutations/0/record/address', '/mutations/1']);
});

test('conflicts of an allocation are in its record', () => {
  expect(pointersOf(conflictError(plans, inRecord))).toEqual(['/record/address', null]);
});
