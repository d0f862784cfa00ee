import { expect, test } from '@jest/globals';
import { JobFailure } from '../../../domain/jobs/jobType.ts';
import { healthOf, type EndedAttempt } from '../../../services/webhooks/firstAttemptRecorder.ts';

const at = (seconds: number) => new Date(seconds * 1_000);

/** Attempts of webhooks in the order in which they ended: `+` succeeded, `-` failed, `?` not at the endpoint. */
const ended = (
  attempts: readonly (readonly [webhookId: string, how: '+' | '-' | '?', endpointUrl?: string])[],
) =>
  attempts.map(
    ([webhookId, how, endpointUrl = 'url'], n) =>
      ({
        attempt: { webhookId, endpointUrl },
        failure: how === '+' ? undefined : new JobFailure('http_status', 'x'),
        notEndpointFault: how === '?',
        finishedAt: at(n),
      }) as EndedAttempt,
  );

test('a webhook fails since its first failure after its last success', () => {
  expect(
    healthOf(
      ended([
        ['a', '-'],
        ['a', '+'],
        ['a', '-'],
        ['a', '-'],
      ]),
    ),
  ).toEqual([{ webhookId: 'a', endpointUrl: 'url', anySucceeded: true, failingSince: at(2) }]);
  expect(
    healthOf(
      ended([
        ['a', '-'],
        ['a', '-'],
        ['a', '+'],
      ]),
    ),
  ).toEqual([{ webhookId: 'a', endpointUrl: 'url', anySucceeded: true, failingSince: null }]);
  expect(
    healthOf(
      ended([
        ['b', '-'],
        ['a', '-'],
        ['b', '-'],
      ]),
    ),
  ).toEqual([
    { webhookId: 'a', endpointUrl: 'url', anySucceeded: false, failingSince: at(1) },
    { webhookId: 'b', endpointUrl: 'url', anySucceeded: false, failingSince: at(0) },
  ]);
});

test('failures that are not the fault of the endpoint say nothing about it', () => {
  expect(
    healthOf(
      ended([
        ['a', '?'],
        ['b', '+'],
        ['b', '?'],
      ]),
    ),
  ).toEqual([{ webhookId: 'b', endpointUrl: 'url', anySucceeded: true, failingSince: null }]);
});

test('an earlier endpoint of a webhook says nothing about the present one', () => {
  expect(
    healthOf(
      ended([
        ['a', '+', 'new'],
        ['a', '-', 'old'],
      ]),
    ),
  ).toEqual([
    { webhookId: 'a', endpointUrl: 'new', anySucceeded: true, failingSince: null },
    { webhookId: 'a', endpointUrl: 'old', anySucceeded: false, failingSince: at(1) },
  ]);
});
