import { expect, test } from '@jest/globals';
import { MASK } from '../../../domain/shared/mask.ts';
import { MAX_EXCERPT_BYTES, responseExcerpt } from '../../../domain/shared/responseExcerpt.ts';

const excerpt = (body: string, ...credentials: string[]) =>
  responseExcerpt({ body, truncated: false }, credentials);

test('a short response is recorded as a whole, without what the request had secret', () => {
  expect(excerpt('The code p4ss-w0rd is wrong', 'p4ss-w0rd', 'The')).toEqual({
    body: `The code ${MASK} is wrong`,
    truncated: false,
  });
});

test.each([0, 1, 5, 9, 10])(
  'no part of a credential is left, wherever the cut is (%i)',
  (shift) => {
    const secret = 'p4ss-w0rd-';
    const before = 'x'.repeat(MAX_EXCERPT_BYTES - shift);
    const { body, truncated } = excerpt(`${before}${secret}${'y'.repeat(5_000)}`, secret);
    expect(body).not.toContain('p4');
    expect(body.slice(0, 4_000)).toBe(before.slice(0, 4_000));
    expect(truncated).toBe(true);
  },
);

test.each([1, 5, 9])(
  'no part of a credential is left that the client has cut off after %i characters',
  (kept) => {
    const secret = 'p4ss-w0rd-';
    const response = { body: `short: ${secret.slice(0, kept)}`, truncated: true };
    const { body, truncated } = responseExcerpt(response, [secret]);
    expect(body).not.toContain('p');
    expect('short: '.startsWith(body)).toBe(true);
    expect(truncated).toBe(true);
  },
);

test('nothing is left of a truncated response that is shorter than a credential', () => {
  const response = { body: 'p4ss-w0', truncated: true };
  expect(responseExcerpt(response, ['p4ss-w0rd-'])).toEqual({ body: '', truncated: true });
});

test('a text of credentials that become shorter leaves no part of one at its end', () => {
  const secret = 's3cret-'.repeat(10);
  const { body } = excerpt(secret.repeat(500), secret);
  expect(body).toMatch(/^\*+$/);
});

test('of a request with more than 1,000 credentials no response is recorded', () => {
  const credentials = Array.from({ length: 65_000 }, (_, i) => `a-${i}-z`);
  expect(excerpt('a'.repeat(65_536), ...credentials)).toEqual({ body: MASK, truncated: true });
});
