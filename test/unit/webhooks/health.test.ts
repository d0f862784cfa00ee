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
    });
  },
);
