import { mock } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import type { Log } from '../../../platform/log.ts';
import type { TemporalConnection } from '../../../temporal/connection.ts';
import { createVersionState } from '../../../temporal/deployment.ts';

const own = { name: 'holdfast', buildId: 'one' };

/** A Temporal whose worker service registers the version of the workers only when the test says so. */
function slowTemporal() {
  const state = { isRegistered: false, current: undefined as string | undefined, refuses: false };
  const notFound = Object.assign(new Error('unknown'), { code: 5, details: '', metadata: {} });
  const workflowService = {
    describeWorkerDeployment: () =>
      state.isRegistered
        ? Promise.resolve({
            workerDeploymentInfo: {
              routingConfig: { currentDeploymentVersion: { buildId: state.current } },
              versionSummaries: [own.buildId, 'other'].map((buildId) => ({
                deploymentVersion: { buildId },
              })),
            },
          })
        : Promise.reject(notFound),
    setWorkerDeploymentCurrentVersion: ({ buildId }: { buildId: string }) => {
      if (state.refuses) return Promise.reject(new Error('not yet'));
      state.current = buildId;
      return Promise.resolve({});
    },
  };
  const live = { workflowService, withDeadline: (_: number, work: () => unknown) => work() };
  const temporal = { namespace: 'default', nativeConnection: () => Promise.resolve(live) };
  return { state, temporal: temporal as unknown as TemporalConnection };
}

const errors: unknown[][] = [];
const log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: (...args: unknown[]) => errors.push(args),
} as unknown as Log;

async function withState(
  work: (state: ReturnType<typeof slowTemporal>['state'], isCurrent: () => boolean) => unknown,
) {
  mock.timers.enable({ apis: ['setTimeout'] });
  const { state, temporal } = slowTemporal();
  const version = createVersionState(temporal, own, log);
  version.start();
  version.onPolling();
  try {
    await work(state, version.isCurrent);
  } finally {
    await version.stop().finally(() => mock.timers.reset());
  }
}

async function pass(seconds: number) {
  for (let second = 0; second < seconds; second++) {
    mock.timers.tick(1_000);
    await setImmediate();
  }
}

test('the first version is made current however late Temporal knows it', () =>
  withState(async (state, isCurrent) => {
    errors.length = 0;
    await pass(180);
    expect(isCurrent()).toBe(false);
    expect(errors).toEqual([
      [
        expect.objectContaining({ command: 'npm run deployment -- current one' }),
        expect.stringMatching(/^no version of the workers is current/),
      ],
    ]);
    Object.assign(state, { isRegistered: true, refuses: true });
    await pass(180);
    expect(state.current).toBeUndefined();
    state.refuses = false;
    await pass(3);
    expect([state.current, isCurrent()]).toEqual(['one', true]);
  }));

test('a version that an operator has made current, or taken back, is left alone', () =>
  withState(async (state, isCurrent) => {
    Object.assign(state, { isRegistered: true, current: 'other' });
    await pass(10);
    expect([state.current, isCurrent()]).toEqual(['other', false]);
    state.current = undefined;
    await pass(10);
    expect(state.current).toBeUndefined();
  }));
