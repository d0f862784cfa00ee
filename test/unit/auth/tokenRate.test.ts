import { expect, test } from '@jest/globals';
import { createTokenRate } from '../../../services/auth/apiTokens/rate.ts';
import { isInNetworks, isWithinNetwork, readNetwork } from '../../../platform/network.ts';

test('a token has its requests a minute, which refill steadily', () => {
  let time = 1_000_000;
  const rate = createTokenRate({ now: () => time });
  const refused = (retryAfterSeconds: number) =>
    expect.objectContaining({ code: 'too_many_requests', extra: { retryAfterSeconds } });
  for (let n = 0; n < 6; n++) rate.count('tok_1', 6);
  expect(() => rate.count('tok_1', 6)).toThrow(refused(10));
  expect(() => rate.check('tok_1')).toThrow(refused(10));
  rate.count('tok_2', 6);
  rate.check('tok_3');
  time += 10_000;
  rate.check('tok_1');
  rate.count('tok_1', 6);
  expect(() => rate.count('tok_1', 6)).toThrow(refused(10));
  // A lower limit counts immediately, and a higher one gains nothing but time.
  time += 60_000;
  rate.count('tok_1', 1);
  expect(() => rate.count('tok_1', 1)).toThrow(refused(60));
});

test('networks', () => {
  expect(isInNetworks('10.1.2.3', ['192.0.2.0/24', '10.0.0.0/8'])).toBe(true);
  expect(isInNetworks('::ffff:10.1.2.3', ['10.0.0.0/8'])).toBe(true);
  expect(isInNetworks('2001:db8::1%eth0', ['2001:db8::/32'])).toBe(true);
  expect(isInNetworks('10.1.2.3', ['2001:db8::/32', '10.1.2.4/32'])).toBe(false);
  expect(isInNetworks(null, ['0.0.0.0/0'])).toBe(false);
  expect(isWithinNetwork('10.0.0.0/8', '10.20.0.0/16')).toBe(true);
  expect(isWithinNetwork('10.20.0.0/16', '10.0.0.0/8')).toBe(false);
  expect(isWithinNetwork('10.0.0.0/8', '2001:db8::/32')).toBe(false);
});

/** CIDRs that programs read in different ways. */
const AMBIGUOUS = ['10.20/16', '10/8', '010.0.0.0/8', '0/0', '10.0.0.0/08', 'fe80::1%eth0/64'];

test.each(AMBIGUOUS)(
  '%s is no network of a setting, and a stored one contains no address',
  (cidr) => {
    expect(readNetwork(cidr)).toEqual({
      problem: 'is not a CIDR such as 10.20.0.0/16 or 2001:db8::/32',
    });
    for (const address of ['10.0.0.1', '10.20.0.1', '0.0.0.1', '8.0.0.1', 'fe80::1'])
      expect([address, isInNetworks(address, [cidr])]).toEqual([address, false]);
  },
);

test('networks of settings are canonical, and the error suggests one', () => {
  expect(['0.0.0.0/0', '2001:DB8:0::/32'].map(readNetwork)).toEqual([
    { network: '0.0.0.0/0' },
    { network: '2001:db8::/32' },
  ]);
  expect(['10.1.2.3/8', '::ffff:10.0.0.0/104'].map(readNetwork)).toEqual([
    { problem: 'has host bits set; suggested: 10.0.0.0/8' },
    { problem: 'is an IPv4 network in IPv6 form; suggested: 10.0.0.0/8' },
  ]);
  // Host bits of a network that an earlier version has stored do not matter.
  expect(isInNetworks('10.9.9.9', ['10.1.2.3/8'])).toBe(true);
  expect(isWithinNetwork('10.1.2.3/8', '10.20.0.0/16')).toBe(true);
});
