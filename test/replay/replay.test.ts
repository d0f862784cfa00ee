import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { DeterminismViolationError } from '@temporalio/workflow';
import {
  bundleWorkflowCode,
  DefaultLogger,
  Worker,
  type WorkflowBundleOption,
} from '@temporalio/worker';
import type { Lane } from '../../domain/jobs/jobType.ts';
import { installRuntime } from '../../processes/composition/index.ts';
import { createLog } from '../../platform/log.ts';
import { workflowBundle } from '../../temporal/bundle.ts';
import { isThorough } from '../support/effort.ts';
import { APPROVALS } from './approvals.ts';
import { BACKUPS } from './backups.ts';
import { DELIVERIES } from './deliveries.ts';
import { recordedHistories } from './histories.ts';
import { pathsIn, pathsOfCode } from './pathsOfCode.ts';
import { REMOTE } from './remote.ts';
import { SCENARIOS, SHARED_RUNS } from './scenarios.ts';
import { SCHEDULES } from './schedules.ts';
import { SCRIPTED } from './scripted.ts';

const histories = await recordedHistories();

beforeAll(() => installRuntime(createLog('silent', false)));

/** What each history says when one worker replays all of them: the error that it ends with, or undefined. */
async function replayAll(
  workflowBundle: WorkflowBundleOption,
  recorded: typeof histories,
): Promise<Map<string, unknown>> {
  const errors = new Map<string, unknown>();
  const results = Worker.runReplayHistories(
    { workflowBundle, replayName: 'test' },
    recorded.map(({ file, history }) => ({ workflowId: file, history })),
  );
  for await (const { workflowId, error } of results) errors.set(workflowId, error);
  return errors;
}

test('every branch of every workflow has a recorded history', () => {
  const wanted = [
    ...SCENARIOS,
    ...SHARED_RUNS,
    ...DELIVERIES,
    ...REMOTE,
    ...SCHEDULES,
    ...APPROVALS,
    ...BACKUPS,
    ...SCRIPTED,
  ]
    .map(({ name }) => name)
    .concat('reconcile.success', 'reconcileSchedules.success')
    .sort();
  expect([...new Set(histories.map(({ branch }) => branch))].sort()).toEqual(wanted);
});

test('what the code of the workflows can do occurs in a recorded history', async () => {
  const recorded = [...new Set(histories.flatMap(pathsIn))];
  const missing = (await pathsOfCode()).filter(
    (pattern) => !recorded.some((path) => new RegExp(`^${pattern}$`).test(path)),
  );
  expect(missing).toEqual([]);
});

/** What the names of the histories of a lane begin with. A lane that is missing here does not compile. */
const OF_LANE: Readonly<Record<Lane, string>> = {
  inline: 'job.inline.',
  activity: 'job.activity.',
  delivery: 'job.delivery.',
  workflow: 'job.steps.',
  remote: 'job.remote.',
};

test.each(Object.entries(OF_LANE))('the lane %s has recorded histories', (_, prefix) => {
  const branches = histories.filter(({ branch }) => branch.startsWith(prefix));
  expect(branches.length).toBeGreaterThan(3);
});

test('a bundle in memory replays as one in a file does', async () => {
  const bundle = await workflowBundle();
  if (!('codePath' in bundle)) throw bundle.writeError;
  const code = await readFile(bundle.codePath, 'utf8');
  const errors = await replayAll({ code }, histories.slice(0, 1));
  expect([...errors.values()]).toEqual([undefined]);
});

describe('the code of today', () => {
  let errors: Map<string, unknown>;
  beforeAll(async () => {
    errors = await replayAll(await workflowBundle(), histories);
  });

  test.each(histories.map(({ file }) => file))('replays %s', (file) => {
    expect(errors.has(file)).toBe(true);
    expect(errors.get(file)).toBeUndefined();
  });
});

test('a workflow that was changed without care fails the replay', async () => {
  const changed = await bundleWorkflowCode({
    workflowsPath: fileURLToPath(new URL('./changed/index.ts', import.meta.url)),
    logger: new DefaultLogger('ERROR'),
  });
  // One that has a step too many, in front of what every branch does first.
  const running = histories.filter(
    ({ branch }) => !branch.startsWith('reconcile') && !branch.includes('before-start'),
  );
  // One branch of each workflow, and of each lane of jobs.
  const kinds = Map.groupBy(running, ({ branch }) => branch.split('.').slice(0, -1).join('.'));
  const chosen = isThorough() ? running : [...kinds.values()].flatMap(([one]) => one ?? []);
  expect(chosen.length).toBeGreaterThan(10);
  const errors = await replayAll(changed, chosen);
  for (const { file } of chosen)
    expect([file, errors.get(file)]).toEqual([file, expect.any(DeterminismViolationError)]);
});
