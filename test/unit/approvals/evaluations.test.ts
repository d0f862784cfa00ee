import { expect, test } from '@jest/globals';
import type { ApprovalData } from '../../../domain/approvals/records.ts';
import { systemCaller } from '../../../domain/shared/caller.ts';
import { createLog } from '../../../platform/log.ts';
import type { Blocker } from '../../../services/approvals/checks.ts';
import { createEvaluations } from '../../../services/approvals/evaluations.ts';

const caller = systemCaller('acme', 'test');
// The evaluations read nothing but the id.
const request = (id: string) => ({ id }) as ApprovalData;

/** Evaluations whose checks end when the test says so, or with their signal. */
function evaluations() {
  const running: { end(): void; signal: AbortSignal | undefined }[] = [];
  const { findBlocker } = createEvaluations({
    log: createLog('silent', false),
    checks: {
      findBlocker(_approval, asker) {
        const { promise, resolve } = Promise.withResolvers<Blocker | null>();
        running.push({ end: () => resolve(null), signal: asker?.signal });
        return promise.finally(() => asker?.signal.throwIfAborted());
      },
    },
  });
  return {
    running,
    read: (id: string, signal: AbortSignal) => findBlocker(caller, request(id), signal),
  };
}

test('the readers of one request share an evaluation; those of others are not kept out', async () => {
  const { running, read } = evaluations();
  const { signal } = new AbortController();
  const requests = ['a', 'a', 'b', 'c', 'd', 'e', 'f'];
  const answers = requests.map((id) => read(id, signal));
  expect(running).toHaveLength(6);
  for (const { end } of running) end();
  expect(await Promise.all(answers)).toEqual(requests.map(() => null));
});

test('an evaluation ends when all its readers have left, and who comes then starts another', async () => {
  const { running, read } = evaluations();
  const [first, second] = [new AbortController(), new AbortController()];
  const left = [read('a', first.signal), read('a', second.signal)];
  first.abort();
  expect(running[0]?.signal?.aborted).toBe(false);
  second.abort();
  expect(running[0]?.signal?.aborted).toBe(true);
  const next = read('a', new AbortController().signal);
  expect(running).toHaveLength(2);
  running[0]?.end();
  expect(await Promise.all(left)).toMatchObject([
    { error: { code: 'not_evaluated' } },
    { error: { code: 'not_evaluated' } },
  ]);
  // The end of the first one does not remove the one that runs.
  const third = read('a', new AbortController().signal);
  expect(running).toHaveLength(2);
  running[1]?.end();
  expect(await Promise.all([next, third])).toEqual([null, null]);
});

test('a reader who has left starts nothing', async () => {
  const { running, read } = evaluations();
  await expect(read('a', AbortSignal.abort(new Error('left')))).rejects.toThrow('left');
  expect(running).toEqual([]);
});
