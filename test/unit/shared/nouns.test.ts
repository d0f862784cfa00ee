import { describe, expect, test } from '@jest/globals';
import { QUOTA_NAMES, quotaText } from '../../../domain/access/quotas.ts';
import { type EventType, SUPPORTED_EVENT_TYPES } from '../../../domain/events/events.ts';
import { eventSummary } from '../../../domain/events/summaries.ts';
import { RESOURCE_NAMES } from '../../../domain/inventory/names.ts';
import { RESOURCES } from '../../../domain/inventory/resources/index.ts';
import { SEARCH_KINDS } from '../../../domain/search/query.ts';
import { counted, ranged } from '../../../domain/shared/counted.ts';
import { notFound } from '../../../domain/shared/errors.ts';
import {
  headingOf,
  listed,
  nounOf,
  nounOfField,
  withArticle,
} from '../../../domain/shared/nouns.ts';

/** Names of resources and kinds that are not words. */
const NOT_A_WORD = /\b(?:[a-z]+-[a-z]+s?|ip|vrfs?|vlans?)\b/;

describe('the noun of a type of records', () => {
  test.each([
    ['prefixes', 1, 'prefix'],
    ['prefixes', 2, 'prefixes'],
    ['ip-addresses', 1, 'IP address'],
    ['ip-address', 1, 'IP address'],
    ['ip_addresses', 0, 'IP addresses'],
    ['vrfs', 1, 'VRF'],
    ['vrfs', 3, 'VRFs'],
    ['vlan-groups', 1, 'VLAN group'],
    ['device-types', 2, 'device types'],
    ['interfaces', 1, 'interface'],
    ['custom-fields', 1, 'custom field'],
    ['workflows', 2, 'approval requests'],
    ['workflow', 1, 'approval request'],
    ['assignment', 1, 'role assignment'],
    ['mappings', 1, 'provider mapping'],
    ['audit entry', 2, 'audit entries'],
  ])('%s for %i are %s', (type, count, noun) => {
    expect(nounOf(type, count)).toBe(noun);
  });

  test('is the same for the name, the kind and the table of a resource', () => {
    for (const name of RESOURCE_NAMES)
      for (const each of [RESOURCES[name].kind, name.replaceAll('-', '_')])
        for (const count of [1, 2]) expect(nounOf(each, count)).toBe(nounOf(name, count));
  });

  test('is another one in the singular', () => {
    for (const kind of SEARCH_KINDS) expect(nounOf(kind, 1)).not.toBe(nounOf(kind, 2));
    expect(headingOf('ip-ranges')).toBe('IP ranges');
  });

  test.each([
    ['ip-range', 'an IP range'],
    ['interface', 'an interface'],
    ['vrf', 'a VRF'],
    ['user', 'a user'],
  ])('%s with its article is %s', (type, text) => {
    expect(withArticle(nounOf(type))).toBe(text);
  });
});

test('errors and summaries have words for every type of records', () => {
  const kinds = RESOURCE_NAMES.map((name) => RESOURCES[name].kind);
  for (const kind of kinds) expect(notFound(kind, 'x').message).not.toMatch(NOT_A_WORD);
  for (const type of SUPPORTED_EVENT_TYPES.filter((each) => each.startsWith('inventory.')))
    expect(eventSummary(type as EventType)).not.toMatch(NOT_A_WORD);
});

test('a quota is named by what it counts', () => {
  for (const name of QUOTA_NAMES)
    expect(quotaText('red', { name, limit: 1, used: 1 })).not.toContain(`(${name})`);
  expect(quotaText('red', { name: 'customFields', limit: 1, used: 1 })).toBe(
    'This would exceed the quota of 1 that the tenant red has for custom fields; it owns 1.',
  );
});

test('fields are named as words, and listed', () => {
  expect(listed(['tenantId', 'deviceTypeId', 'name'].map(nounOfField))).toBe(
    'tenant, device type and name',
  );
  expect(listed(['rd'].map(nounOfField))).toBe('RD');
});

test('numbers and ranges have the number of their noun', () => {
  expect([1, 2, 0].map((n) => counted(n, 'entry'))).toEqual(['1 entry', '2 entries', '0 entries']);
  expect([ranged('unit', 3, 3), ranged('unit', 3, 5)]).toEqual(['unit 3', 'units 3 to 5']);
});
