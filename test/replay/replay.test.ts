import { fileURLToPath } from 'node:url';
import { beforeAll, expect, test } from '@jest/globals';
import { DeterminismViolationError } from '@temporalio/workflow';
import {
  bundleWorkflowCode,
  DefaultLogger,
  Worker,
  type WorkflowBundleOption,
} from '@temporalio/worker';
import { installRuntime } from '../../composition.ts';
import { createLog } from '../../platform/log.ts';
import { workflowBundle } from '../../temporal/bundle.ts';
import { APPROVALS } from './approvals.ts';
import { BACKUPS } from './backups.ts';
import { DELIVERIES } from './deliveries.ts';
import { recordedHistories } from './histories.ts';
import { SCENARIOS } from './scenarios.ts';
import { SCHEDULES } from './schedules.ts';

const histories = await recordedHistories();

beforeAll(() => installRuntime(createLog('silent', false)));

const replay = (bundle: WorkflowBundleOption, history: unknown) =>
  Worker.runReplayHistory({ workflowBundle: bundle, replayName: 'test' }, history);

test('every branch of every workflow has a recorded history', () => {
  const wanted = [...SCENARIOS, ...DELIVERIES, ...SCHEDULES, ...APPROVALS, ...BACKUPS]
    .map(({ name }) => name)
    .concat('reconcile.success', 'reconcileSchedules.success')
    .sort();
  expect([...new Set(histories.map(({ branch }) => branch))].sort()).toEqual(wanted);
});

test.each(histories.map(({ file, history }) => [file, history] as const))(
  'today’s code replays %s',
  async (_file, history) => {
    await replay({ codePath: await workflowBundle() }, history);
  },
);

test('a workflow that was changed without care fails the replay', async () => {
  const changed = await bundleWorkflowCode({
    workflowsPath: fileURLToPath(new URL('./changed/index.ts', import.meta.url)),
    logger: new DefaultLogger('ERROR'),
  });
  // One that has a step too many, in front of what every branch does first.
  const running = histories.filter(
    ({ branch }) => !branch.startsWith('reconcile') && !branch.includes('before-start'),
  );
  expect(running.length).toBeGreaterThan(10);
  for (const { history } of running) {
    await expect(replay(changed, history)).rejects.toThrow(DeterminismViolationError);
  }
});
