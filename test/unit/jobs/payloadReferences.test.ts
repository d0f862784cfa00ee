import { describe, expect, test } from '@jest/globals';
import {
  MAX_REFERENCES,
  referencesIn,
  unknownReferencesIn,
} from '../../../domain/jobs/payloadReferences.ts';

const devices = { type: 'string', 'x-holdfast-ref': 'devices' };
const sites = { type: 'string', 'x-holdfast-ref': 'sites' };
const found = (schema: object, payload: unknown) =>
  referencesIn(schema, payload).map(
    ({ pointer, id, resources }) => `${pointer} ${resources.join('|')} ${id}`,
  );

describe('references in a payload', () => {
  test.each<[string, object, unknown, string[]]>([
    ['a property', { properties: { a: devices } }, { a: 'd1', b: 'd2' }, ['/a devices d1']],
    [
      'a list with the keyword',
      { properties: { a: { type: 'array', 'x-holdfast-ref': 'devices' } } },
      { a: ['d1', 'd2'] },
      ['/a/0 devices d1', '/a/1 devices d2'],
    ],
    [
      'items, also of a tuple',
      { properties: { a: { prefixItems: [sites], items: devices } } },
      { a: ['s1', 'd1'] },
      ['/a/0 sites|devices s1', '/a/1 devices d1'],
    ],
    [
      'properties of any name',
      { additionalProperties: { properties: { 'a/b': devices } } },
      { x: { 'a/b': 'd1' } },
      ['/x/a~1b devices d1'],
    ],
    [
      'alternatives, which count together',
      { properties: { a: { anyOf: [devices, sites, { type: 'null' }] } } },
      { a: 'd1' },
      ['/a devices|sites d1'],
    ],
    ['null, which names nothing', { properties: { a: devices } }, { a: null }, []],
    [
      'definitions, also in themselves',
      {
        $defs: { node: { properties: { id: devices, next: { $ref: '#/$defs/node' } } } },
        $ref: '#/$defs/node',
      },
      { id: 'd1', next: { id: 'd2' } },
      ['/id devices d1', '/next/id devices d2'],
    ],
    [
      'a reference that leads to itself',
      { $ref: '#', properties: { a: devices } },
      { a: 'd1' },
      ['/a devices d1'],
    ],
    [
      'conditions',
      { if: { properties: { k: { const: 1 } } }, then: { properties: { a: devices } } },
      { k: 1, a: 'd1' },
      ['/a devices d1'],
    ],
  ])('%s', (_, schema, payload, expected) => {
    expect(found(schema, payload)).toEqual(expected);
  });

  test('are as many as one more than allowed at most', () => {
    const schema = { properties: { a: { 'x-holdfast-ref': 'devices' } } };
    expect(referencesIn(schema, { a: Array(10_000).fill('d') })).toHaveLength(MAX_REFERENCES + 1);
  });
});

test('a keyword that names no resource is found wherever it is', () => {
  expect(
    unknownReferencesIn({
      properties: { 'x-holdfast-ref': devices, a: { 'x-holdfast-ref': 'routers' } },
      $defs: { b: { 'x-holdfast-ref': 7 } },
    }),
  ).toEqual(['"routers"', '7']);
});
