import { expect, test } from '@jest/globals';
import { isRefused } from '../../../db/core/constraints.ts';
import { toAppError } from '../../../api/http/problem.ts';
import { asConnectFailure } from '../../../domain/shared/driverError.ts';
import { isClientRefused } from '../../../domain/shared/outage.ts';

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
  ['28P01', 'password authentication failed for user "holdfast"'],
  ['28000', 'role "holdfast" is not permitted to log in'],
  ['3D000', 'database "holdfast" does not exist'],
  ['55000', 'database "holdfast" is not currently accepting connections'],
  ['42501', 'permission denied for database "holdfast"'],
  ['CERT_HAS_EXPIRED', 'certificate has expired'],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'self-signed certificate in certificate chain'],
])('%s is an outage where a connection is opened: %s', (code, message) => {
  const error = asConnectFailure(pgError(code, message));
  for (const thrown of [error, { name: 'DBError', nativeError: error }]) {
    expect(toAppError(thrown)).toMatchObject({
      code: 'unavailable',
      extra: { retryAfterSeconds: 2 },
    });
    expect(isRefused(thrown)).toBe(false);
    expect(isClientRefused(thrown)).toBe(true);
  }
  expect(toAppError(pgError('42501', message)).code).toBe('internal');
});

test('a server that cannot be reached, or has too many connections, has not refused the client', () => {
  for (const code of ['ECONNREFUSED', '57P03', '53300'])
    expect(isClientRefused(asConnectFailure(pgError(code)))).toBe(false);
  expect(toAppError(asConnectFailure(pgError('53300'))).code).toBe('no_database_connection');
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
