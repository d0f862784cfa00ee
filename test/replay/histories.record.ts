import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startApp, type TestApp } from '../support/app.ts';
import { createArchiveFolder } from '../support/backups.ts';
import { createUser } from '../support/users.ts';
import { APPROVALS, playApproval } from './approvals.ts';
import { BACKUPS } from './backups.ts';
import { DELIVERIES, runBranch } from './deliveries.ts';
import { record } from './histories.ts';
import { REMOTE, runRemoteBranch } from './remote.ts';
import { runScenario, runSharedScenario, SCENARIOS, SHARED_RUNS } from './scenarios.ts';
import { runScheduleScenario, SCHEDULES } from './schedules.ts';
import { playScript, SCRIPTED } from './scripted.ts';

/** Runs with `npm run record-histories` only: it writes files. */
let app: TestApp;
let archives: Awaited<ReturnType<typeof createArchiveFolder>>;
beforeAll(async () => {
  archives = await createArchiveFolder();
  app = await startApp(archives.env);
  // The owner of the accounts of runners.
  await createUser(app, 'viewer');
});
afterAll(async () => {
  await app.stop();
  await archives.remove();
});

test.each(SCENARIOS.map((scenario) => [scenario.name, scenario] as const))(
  '%s',
  async (name, scenario) => {
    expect(await record(name, await runScenario(app, scenario))).toContain(name);
  },
);

test.each(SHARED_RUNS.map((branch) => [branch.name, branch] as const))(
  '%s',
  async (name, branch) => {
    expect(await record(name, await runSharedScenario(app, branch))).toContain(name);
  },
);

test.each(DELIVERIES.map((branch) => [branch.name, branch] as const))(
  '%s',
  async (name, branch) => {
    expect(await record(name, await runBranch(app, branch))).toContain(name);
  },
);

test.each(REMOTE.map((branch) => [branch.name, branch] as const))('%s', async (name, branch) => {
  expect(await record(name, await runRemoteBranch(app, branch))).toContain(name);
});

test.each(SCHEDULES.map((branch) => [branch.name, branch] as const))('%s', async (name, branch) => {
  expect(await record(name, await runScheduleScenario(app, branch))).toContain(name);
});

test.each(APPROVALS.map((branch) => [branch.name, branch] as const))('%s', async (name, branch) => {
  expect(await record(name, await playApproval(app, branch))).toContain(name);
});

test.each(SCRIPTED.map((script) => [script.name, script] as const))('%s', async (name, script) => {
  expect(await record(name, await playScript(app, script))).toContain(name);
});

test.each(BACKUPS.map((branch) => [branch.name, branch] as const))('%s', async (name, branch) => {
  const workflowId = await branch.play(app);
  const handle = await app.deps.temporal.call(20_000, (client) =>
    Promise.resolve(client.workflow.getHandle(workflowId)),
  );
  await handle.result().catch(() => undefined);
  expect(await record(name, handle)).toContain(name);
});

test.each(['reconcile', 'reconcileSchedules'])('%s', async (workflow) => {
  const { taskQueue } = app.deps.config;
  const handle = await app.deps.temporal.call(20_000, (client) =>
    client.workflow.start(workflow, { workflowId: `${workflow}:${taskQueue}`, taskQueue }),
  );
  await handle.result();
  expect(await record(`${workflow}.success`, handle)).toContain(workflow);
});
