import { describe, expect, test } from '@jest/globals';
import { networkProblem, Problem, problemOf } from '../../../ui/app/problem.ts';
import { canEverywhere, hasNoRole } from '../../../ui/app/session/permissions.ts';
import { isWorthRepeating } from '../../../ui/parts/problems.ts';

const problem = (status: number, code: string) =>
  new Problem({ status, code, title: code, detail: '' });

describe('a failed request', () => {
  test('leaves open whether a request was carried out only if it would change something', () => {
    expect(networkProblem(null, 'GET').detail).toBe('The server does not answer.');
    expect(networkProblem(null, 'POST').detail).toMatch(/may or may not have been carried out/);
  });

  test('can end; what is refused or missing is not asked for again', () => {
    expect([0, 429, 500, 503].map((status) => isWorthRepeating(problem(status, 'x')))).toEqual(
      Array(4).fill(true),
    );
    expect([403, 404, 410].map((status) => isWorthRepeating(problem(status, 'x')))).toEqual(
      Array(3).fill(false),
    );
  });
});

test('a refusal says when to try again only if the server has said so', () => {
  const waitOf = (headers: Record<string, string>) =>
    problemOf(new Response(null, { status: 400, headers }), {}).retryAfterSeconds;
  expect(waitOf({ 'retry-after': '7' })).toBe(7);
  expect([waitOf({}), waitOf({ 'retry-after': '' }), waitOf({ 'retry-after': 'soon' })]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});

describe('permissions', () => {
  const none = {
    everywhere: false,
    complete: true,
    tenantIds: [] as string[],
    siteIds: [] as string[],
    deviceIds: [] as string[],
  };
  const summary = (permissions: Record<string, typeof none>) => ({ tenantId: 'acme', permissions });

  test('none at all is no role; a part is not everywhere', () => {
    expect(hasNoRole(summary({}))).toBe(true);
    expect(hasNoRole(summary({ 'job:read': none }))).toBe(true);
    const site = summary({ 'job:read': { ...none, siteIds: ['sit_1'] } });
    expect([hasNoRole(site), canEverywhere(site, 'job:read')]).toEqual([false, false]);
    const all = summary({ 'job:read': { ...none, everywhere: true } });
    expect([hasNoRole(all), canEverywhere(all, 'job:read')]).toEqual([false, true]);
    expect(canEverywhere(all, 'job:write')).toBe(false);
  });
});
