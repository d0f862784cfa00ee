import { expect, test } from '@jest/globals';
import { assertDefined } from '../../../domain/shared/assert.ts';
import {
  endOf,
  neighbourhoodOf,
  neighboursIn,
  nextFreeIn,
} from '../../../ui/areas/inventory/addresses/neighbours.ts';
import { networkOf } from '../../../ui/areas/inventory/space/networks.ts';

const network = (cidr: string) => assertDefined(networkOf(cidr), cidr);
const address = (text: string, more: object = {}) => ({
  ...{ address: text, id: 'ipa_1', status: 'active', dnsName: null },
  ...more,
});

test('the addresses beside one are those of its prefix, with what takes each', () => {
  const prefix = network('10.0.0.0/29');
  expect(neighbourhoodOf(prefix, network('10.0.0.5').first)).toEqual(prefix);
  const kinds = neighboursIn(
    prefix,
    prefix,
    {
      addresses: [address('10.0.0.1', { dnsName: 'gw' })],
      ranges: [{ start: '10.0.0.6', end: '10.0.0.20', id: null }],
    },
    [
      { cidr: '10.0.0.4/31', id: 'pfx_1' },
      { cidr: '10.0.0.0/29', id: 'pfx_2' },
    ],
  ).map((each) => each.kind);
  expect(kinds).toEqual([
    ...['network', 'address', 'free', 'free', 'prefix', 'prefix', 'range', 'range'],
  ]);
  const six = network('2001:db8::/64');
  const around = neighbourhoodOf(six, network('2001:db8::45').first);
  const found = neighboursIn(six, around, { addresses: [], ranges: [] }, []);
  expect([found.length, found[0], found.at(-1)?.address]).toEqual([
    ...[32, { address: '2001:db8::40', kind: 'free' }, '2001:db8::5f'],
  ]);
});

test('the next free address is one that a host can have', () => {
  expect(nextFreeIn(network('10.0.0.0/24'), ['10.0.0.0/30'])).toBe('10.0.0.1');
  expect(nextFreeIn(network('10.0.0.0/24'), ['10.0.0.0/32', '10.0.0.255/32'])).toBeUndefined();
  expect(nextFreeIn(network('10.0.0.0/31'), ['10.0.0.0/32'])).toBe('10.0.0.0');
  expect(nextFreeIn(network('2001:db8::/64'), ['2001:db8::/65'])).toBe('2001:db8::1');
});

test('an address differs from its neighbours by its end', () => {
  expect([endOf('10.0.0.17'), endOf('2001:db8::2a')]).toEqual(['.17', ':2a']);
});
