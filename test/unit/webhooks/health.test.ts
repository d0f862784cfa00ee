import { expect, test } from '@jest/globals';
import type { WebhookHealth } from '../../../db/webhooks/health.ts';
import { withSign } from '../../../services/webhooks/health.ts';

const at = (seconds: number) => new Date(seconds * 1_000);

/** What is known of an endpoint after attempts, such as `+1` (succeeded at second 1) and `-2` (failed at second 2). */
const after = (attempts: string) =>
  attempts.split(' ').reduce<WebhookHealth | undefined>(
    (before, sign) =>
      withSign(before, {
        webhookId: 'a',
        endpointUrl: 'url',
        hasFailed: sign.startsWith('-'),
        // Both are kept in the same way.
        hasAnswered: sign.startsWith('+'),
        at: at(Number(sign.slice(1))),
      }),
    undefined,
  );

test.each([
  ['-0', null, 0],
  ['-0 -1', null, 0],
  ['+0', 0, null],
  ['-0 -1 +2', 2, null],
  ['-0 +1 -2 -3', 1, 2],
  // Some are recorded later than those after them.
  ['-3 +1', 1, 3],
  ['+3 -1', 3, null],
  ['+3 +1', 3, null],
  ['-3 -2', null, 2],
])(
  'after %s a webhook fails since its first failure after its last success',
  (attempts, succeeded, failed) => {
    expect(after(attempts)).toEqual({
      webhookId: 'a',
      endpointUrl: 'url',
      succeededAt: succeeded === null ? null : at(succeeded),
      failedAt: failed === null ? null : at(failed),
      answeredAt: succeeded === null ? null : at(succeeded),
      unansweredAt: failed === null ? null : at(failed),
    });
  },
);

test('what a sign does not say stays as it was', () => {
  const endpoint = { webhookId: 'a', endpointUrl: 'url' };
  const before = withSign(undefined, {
    ...endpoint,
    hasFailed: true,
    hasAnswered: false,
    at: at(0),
  });
  expect(withSign(before, { ...endpoint, hasAnswered: true, at: at(1) })).toEqual({
    ...before,
    answeredAt: at(1),
    unansweredAt: null,
  });
});
