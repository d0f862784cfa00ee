import { expect, test } from '@jest/globals';
import { isRefused } from '../../../db/core/constraints.ts';
import { toAppError } from '../../../api/http/problem.ts';

const pgError = (code: string, message = 'refused') =>
  Object.assign(new Error(message), { code, severity: 'FATAL' });

test.each([
  ['53300', 'sorry, too many clients already', 'no_database_connection'],
  ['53300', 'remaining connection slots are reserved for roles …', 'no_database_connection'],
  ['08P01', 'no more connections allowed (max_client_conn)', 'no_database_connection'],
  ['08P01', 'server conn crashed?', 'unavailable'],
  ['57P01', 'terminating connection due to administrator command', 'unavailable'],
  ['57P02', 'terminating connection because of crash of another server process', 'unavailable'],
  ['57P03', 'the database system is starting up', 'unavailable'],
  ['25006', 'cannot execute INSERT in a read-only transaction', 'unavailable'],
  ['25P03', 'terminating connection due to idle-in-transaction timeout', 'unavailable'],
  ['25P04', 'terminating connection due to transaction timeout', 'unavailable'],
  ['ECONNRESET', 'read ECONNRESET', 'unavailable'],
  ['EHOSTUNREACH', 'connect EHOSTUNREACH', 'unavailable'],
  ['EHOSTDOWN', 'connect EHOSTDOWN', 'unavailable'],
  ['ENETUNREACH', 'connect ENETUNREACH', 'unavailable'],
  ['ENETDOWN', 'connect ENETDOWN', 'unavailable'],
  ['ERR_STREAM_PREMATURE_CLOSE', 'Premature close', 'internal'],
])('%s (%s) is %s', (code, message, expected) => {
  for (const error of [
    pgError(code, message),
    { name: 'DBError', nativeError: pgError(code, message) },
  ])
    expect(toAppError(error).code).toBe(expected);
});

test.each([
  ['23505', true],
  ['22P02', true],
  ['25006', false],
  ['08006', false],
  ['40003', false],
  ['53300', false],
])('%s is the refusal of a statement: %s', (code, refused) => {
  expect(isRefused(pgError(code))).toBe(refused);
});

test.each([
  'Connection terminated unexpectedly',
  'Connection ended unexpectedly',
  'Client has encountered a connection error and is not queryable',
  'Transaction query already complete, run with DEBUG=knex:tx for more info',
  'timeout expired',
])('"%s" is an outage, with Retry-After', (message) => {
  expect(toAppError(new Error(message))).toMatchObject({
    code: 'unavailable',
    extra: { retryAfterSeconds: 2 },
  });
});

test('a pool without a free connection is a busy server', () => {
  const error = Object.assign(new Error('Timeout acquiring a connection.'), {
    name: 'KnexTimeoutError',
  });
  expect(toAppError(error)).toMatchObject({
    code: 'server_busy',
    extra: { retryAfterSeconds: 2 },
  });
});
