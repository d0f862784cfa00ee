import { describe, expect, test } from '@jest/globals';
import { networkProblem, ownAnswer, Problem, problemOf } from '../../../ui/app/problem.ts';
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

describe('what something else than Holdfast answers', () => {
  const json = { 'content-type': 'application/json' };
  const own = { ...json, 'x-request-id': 'req_1' };
  const problem = { 'content-type': 'application/problem+json; charset=utf-8' };
  const refusal = (status: number, headers: Record<string, string>, method = 'GET') => {
    try {
      ownAnswer(new Response('{}', { status, headers }), method);
      return undefined;
    } catch (error) {
      return error as Problem;
    }
  };

  test('is no answer: neither JSON of a sign-in page, nor a refusal without a problem document', () => {
    expect(refusal(200, own)).toBeUndefined();
    expect(refusal(412, problem)).toBeUndefined();
    expect(refusal(200, json)?.code).toBe('unexpected_answer');
    expect(refusal(401, json)?.detail).toMatch(/the status 401/);
    const html = { 'content-type': 'text/html', 'x-request-id': 'a proxy has one, too' };
    expect(refusal(401, html)?.status).toBe(0);
    expect(problemOf(new Response('{}', { status: 401, headers: own }), {}).status).toBe(0);
  });

  test('is one with an error status that has found something, as a validation does', () => {
    const found = new Response('{}', { status: 409, headers: own });
    expect(ownAnswer(found, 'POST')).toBe(found);
    expect(problemOf(found, { validation: {} }).body).toEqual({ validation: {} });
  });

  test('does not say that something is missing, forbidden or changed, only that it may pass', () => {
    const statuses = [200, 400, 401, 403, 404, 412, 500].map((code) => refusal(code, json)?.status);
    expect(new Set(statuses)).toEqual(new Set([0]));
    const busy = refusal(503, { 'retry-after': '7' });
    expect(busy).toMatchObject({ status: 503, retryAfterSeconds: 7 });
    expect(refusal(429, json)?.status).toBe(429);
  });

  test('leaves open whether a change was made', () => {
    expect(refusal(403, json, 'PUT')?.detail).toMatch(/may or may not have been carried out/);
    expect(refusal(403, json)?.detail).not.toMatch(/carried out/);
  });
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
