import { isGrpcServiceError } from '@temporalio/client';
import proto from '@temporalio/proto';
import type { WorkerOptions } from '@temporalio/worker';
import type { Deployment } from '../platform/config.ts';
import type { Log } from '../platform/log.ts';
import { createLoop } from '../platform/loop.ts';
import type { TemporalConnection } from './connection.ts';

const DEADLINE_MS = 10_000;
/** gRPC code; the types of the SDK have no enumeration for it. */
const NOT_FOUND = 5;

const { WorkerDeploymentVersionStatus: Status } = proto.temporal.api.enums.v1;

/** A version of the workers, as Temporal knows it. */
export type DeployedVersion = { buildId: string; isCurrent: boolean; state: string };

/**
 * The options of a worker with a build id. Temporal then hands the work of all runs, also of those that have
 * started with an older version, to workers of the current version: their code replays all histories.
 */
export const deploymentOptions = (
  deployment: Deployment | undefined,
): Pick<WorkerOptions, 'workerDeploymentOptions'> =>
  deployment
    ? {
        workerDeploymentOptions: {
          version: { deploymentName: deployment.name, buildId: deployment.buildId },
          useWorkerVersioning: true,
          defaultVersioningBehavior: 'AUTO_UPGRADE',
        },
      }
    : {};

/** The versions of a deployment, newest first. None before the first worker has polled. */
export async function readDeployedVersions(
  temporal: TemporalConnection,
  deploymentName: string,
): Promise<DeployedVersion[]> {
  const live = await temporal.nativeConnection(DEADLINE_MS);
  const { namespace } = temporal;
  try {
    const { workerDeploymentInfo: info } = await live.withDeadline(Date.now() + DEADLINE_MS, () =>
      live.workflowService.describeWorkerDeployment({ namespace, deploymentName }),
    );
    const current = info?.routingConfig?.currentDeploymentVersion?.buildId;
    return (info?.versionSummaries ?? []).map(({ deploymentVersion, status }) => {
      const buildId = deploymentVersion?.buildId ?? '';
      const state = (Status[status ?? 0] ?? '').replace('WORKER_DEPLOYMENT_VERSION_STATUS_', '');
      return { buildId, isCurrent: buildId === current, state: state.toLowerCase() };
    });
  } catch (error) {
    if (isGrpcServiceError(error) && (error.code as number) === NOT_FOUND) return [];
    throw error;
  }
}

/** Whether workers of a version get work. */
type VersionState = {
  isCurrent(): boolean;
  /** The workers poll, so Temporal learns of their version. */
  onPolling(): void;
  start(): void;
  stop(): Promise<void>;
};

const CHECK_MS = 5_000;
/** A version that waits is checked more often. */
const WAITING_CHECK_MS = 1_000;

/** Temporal knows a version some seconds after its workers have polled. An operator hears of one that takes longer. */
const LATE_AFTER_CHECKS = 60;

/**
 * Keeps whether a version is the current one. Without a deployment all versions are. While Temporal does not answer,
 * the version stays what it was; one that was never known counts as current, since work must not wait for Temporal.
 * Without a current version nobody gets work, so the first version is made current, however late Temporal knows it.
 */
export function createVersionState(
  temporal: TemporalConnection,
  deployment: Deployment | undefined,
  log: Log,
): VersionState {
  let isCurrent: boolean | undefined;
  /** How often no version was current while the workers polled; null once one has been. */
  let checksWithoutCurrent: number | null = null;

  async function makeFirstCurrent(versions: DeployedVersion[], own: Deployment): Promise<void> {
    if (checksWithoutCurrent === null) return;
    if (versions.some((version) => version.isCurrent)) {
      checksWithoutCurrent = null;
      return;
    }
    if (++checksWithoutCurrent === LATE_AFTER_CHECKS)
      log.error(
        { ...own, command: `npm run deployment -- current ${own.buildId}` },
        'no version of the workers is current, so none gets work; it is tried again until one is',
      );
    if (versions.length === 0) return;
    await makeCurrent(temporal, own);
    log.info({ build: own.buildId }, 'the first version of the workers is current');
  }

  async function check(own: Deployment): Promise<number> {
    try {
      const versions = await readDeployedVersions(temporal, own.name);
      isCurrent = versions.some((version) => version.isCurrent && version.buildId === own.buildId);
      await makeFirstCurrent(versions, own);
    } catch (error) {
      log.debug({ err: error }, 'the current version of the workers is not known yet');
      isCurrent ??= true;
    }
    return isCurrent ? CHECK_MS : WAITING_CHECK_MS;
  }

  const loop =
    deployment &&
    createLoop({ name: 'worker version', everyMs: CHECK_MS, log }, () => check(deployment));

  return {
    isCurrent: () => deployment === undefined || isCurrent === true,
    onPolling: () => void (checksWithoutCurrent = 0),
    start: () => loop?.start(),
    stop: async (): Promise<void> => loop?.stop(),
  };
}

/** From now on, Temporal hands work to the workers of this version. Errors: those of the server. */
export async function makeCurrent(
  temporal: TemporalConnection,
  { name, buildId }: Deployment,
): Promise<void> {
  const live = await temporal.nativeConnection(DEADLINE_MS);
  await live.withDeadline(Date.now() + DEADLINE_MS, () =>
    live.workflowService.setWorkerDeploymentCurrentVersion({
      namespace: temporal.namespace,
      deploymentName: name,
      buildId,
      identity: 'holdfast',
    }),
  );
}
