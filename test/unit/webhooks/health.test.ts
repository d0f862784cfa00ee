import { expect, test } from '@jest/globals';
import type { WebhookHealth } from '../../../db/webhooks/health.ts';
import { withSign } from '../../../services/webhooks/health.ts';

const at = (seconds: number) => new Date(seconds * 1_000);

/** What is known of an endpoint after attempts, one per second: `+` succeeded, `-` failed. */
const after = (attempts: string) =>
  attempts
    .split('')
    .reduce<WebhookHealth | undefined>(
      (before, how, n) =>
        withSign(before, { webhookId: 'a', endpointUrl: 'url', hasFailed: how === '-', at: at(n) }),
      undefined,
    );

test.each([
  ['-', false, at(0)],
  ['--', false, at(0)],
  ['+', true, null],
  ['--+', true, null],
  ['-+--', true, at(2)],
])(
  'after %s a webhook fails since its first failure after its last success',
  (attempts, anySucceeded, failingSince) => {
    expect(after(attempts)).toEqual({
      webhookId: 'a',
      endpointUrl: 'url',
      anySucceeded,
      failingSince,
    });
  },
);
