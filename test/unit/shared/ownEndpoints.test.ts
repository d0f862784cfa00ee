import { expect, test } from '@jest/globals';
import { createOwnEndpoints } from '../../../platform/ownEndpoints.ts';

const at = (host: string, port: number, addresses: string[] = []) => ({ host, port, addresses });

test('endpoints of other processes of this machine are own ones at all of its addresses', () => {
  const own = createOwnEndpoints();
  own.setOthers([{ isSameMachine: true, endpoints: [at('127.0.0.1', 81), at('0.0.0.0', 82)] }]);
  for (const port of [81, 82])
    for (const host of ['127.0.0.1', '::1', '0.0.0.0'])
      expect([host, own.includes(host, port)]).toEqual([host, true]);
  expect(own.includes('10.9.8.7', 82)).toBe(false);
  own.setOthers([]);
  expect(own.includes('127.0.0.1', 81)).toBe(false);
});

test('endpoints of another machine are own ones at its addresses, and its loopback is not that of this machine', () => {
  const own = createOwnEndpoints();
  own.setOthers([
    {
      isSameMachine: false,
      endpoints: [
        at('127.0.0.1', 81),
        at('localhost', 81),
        at('0.0.0.0', 82, ['10.9.8.7', 'fd00::7']),
        at('api.internal', 83),
      ],
    },
  ]);
  for (const host of ['127.0.0.1', 'localhost'])
    for (const port of [81, 82]) expect(own.includes(host, port)).toBe(false);
  expect(own.includes('10.9.8.7', 82)).toBe(true);
  expect(own.includes('fd00:0::7', 82)).toBe(true);
  expect(own.includes('10.9.8.7', 81)).toBe(false);
  expect(own.includes('api.internal', 83)).toBe(true);
});

test('a process says where it listens, with the addresses of its machine if it listens at all', () => {
  const own = createOwnEndpoints([{ host: 'database.internal', port: 5_432 }]);
  own.add({ host: '10.1.2.3', port: 80 });
  own.add({ host: '::', port: 90 });
  expect(own.listening()).toEqual([
    at('10.1.2.3', 80),
    { host: '::', port: 90, addresses: expect.any(Array) },
  ]);
});
