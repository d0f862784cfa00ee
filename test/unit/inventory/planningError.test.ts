import { expect, test } from '@jest/globals';
import { isPlanningError } from '../../../services/inventory/planningError.ts';

const failure = (message: string, fields: object = {}) => Object.assign(new Error(message), fields);

test.each<[string, unknown, boolean]>([
  ['of planning', new TypeError("Cannot read properties of undefined (reading 'id')"), true],
  ['of the database', failure('refused', { code: '23505' }), false],
  ['that Objection wraps', failure('refused', { nativeError: { code: '57014' } }), false],
  ['of the pool', failure('Acquire', { name: 'KnexTimeoutError' }), false],
  ['of a connection', failure('Connection terminated unexpectedly'), false],
  ['that is no error', 'refused', false],
])('an error %s', (_is, error, expected) => {
  expect(isPlanningError(error)).toBe(expected);
});
