import { expect, test } from '@jest/globals';
import type { Work } from '../../../db/core/commit.ts';
import {
  createFirstAttemptRecorder,
  type EndedAttempt,
} from '../../../services/webhooks/firstAttemptRecorder.ts';

const ended = (webhookId: string): EndedAttempt =>
  ({
    attempt: { webhookId, tenantId: webhookId, jobId: `job_${webhookId}` },
    outcome: { httpStatus: 204, durationMs: 1 },
    failure: undefined,
    notEndpointFault: false,
    finishedAt: new Date(0),
  }) as EndedAttempt;

test('an outcome that cannot be written holds up no other one', async () => {
  let isBroken = true;
  const recorded: string[] = [];
  const record = createFirstAttemptRecorder({
    commit: async (_caller: unknown, useCase: (work: Work) => unknown) => {
      const ids: string[] = [];
      await useCase({
        change: () => undefined,
        audit: (_action: string, { id }: { id: string }) => void ids.push(id),
      } as unknown as Work);
      if (isBroken && ids.includes('broken')) throw new Error('refused');
      recorded.push(...ids);
      return true;
    },
    reportJobEnd: () => undefined,
    health: { note: () => undefined },
  } as unknown as Parameters<typeof createFirstAttemptRecorder>[0]);

  const broken = record(ended('broken'));
  await Promise.all(['a', 'b'].map((id) => record(ended(id))));
  await record(ended('later'));
  expect(recorded).toEqual(['a', 'b', 'later']);
  isBroken = false;
  await broken;
  expect(recorded).toEqual(['a', 'b', 'later', 'broken']);
});
