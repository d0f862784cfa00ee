import { expect, test } from '@jest/globals';
import { RemoteTypeDefinition } from '../../../domain/runners/definition.ts';
import { compileCheck } from '../../../platform/schemaCheck.ts';

const check = compileCheck(RemoteTypeDefinition);

test.each<[string, object, string[]]>([
  ['a name', { API_TOKEN: { secret: 'port-audit' } }, []],
  ['none', {}, []],
  ['what is no name of a variable', { 'API-TOKEN': { secret: 'port-audit' } }, ['unknown_field']],
  ['what is no name of a secret', { API_TOKEN: { secret: 'Port audit' } }, ['pattern']],
  ['a value', { API_TOKEN: { value: 'hunter2' } }, ['required', 'unknown_field']],
  [
    'too many',
    Object.fromEntries(Array.from({ length: 21 }, (_, i) => [`A${i}`, { secret: 'port-audit' }])),
    ['maxProperties'],
  ],
])('a remote type may ask for secrets by name: %s', (_what, secrets, codes) => {
  const definition = { name: 'net.audit', summary: 'Audits', pool: 'ams', payload: {}, secrets };
  expect(check(definition).map(({ code }) => code)).toEqual(codes);
});
