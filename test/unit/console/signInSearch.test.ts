import { expect, test } from '@jest/globals';
import { validateSignInSearch } from '../../../ui/areas/auth/signInSearch.ts';

test('signing in leads to a path of this origin only', () => {
  const target = (to: string) => validateSignInSearch({ to }).to;
  for (const own of ['/', '/jobs?status=failed#top', '/inventory/%2F%2Fevil.example', '/a//b'])
    expect(target(own)).toBe(own);
  for (const other of [
    'https://evil.example/',
    '//evil.example/',
    '/\\evil.example/',
    '/\t/evil.example/',
    '/\n/evil.example/',
    '/\r\\evil.example/',
    'javascript:alert(1)',
    'jobs',
    '',
  ])
    expect([other, target(other)]).toEqual([other, undefined]);
});
