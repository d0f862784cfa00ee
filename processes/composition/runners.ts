import { createAnnouncements } from '../../services/runners/announcements.ts';
import { createArtifacts } from '../../services/runners/artifacts.ts';
import { createRemoteAttempts } from '../../services/runners/attempts.ts';
import { createRemoteLines } from '../../services/runners/lines.ts';
import { createPools } from '../../services/runners/pools.ts';
import { createRemoteTypes } from '../../services/runners/remoteTypes.ts';
import { createRunners } from '../../services/runners/runners.ts';
import { createRunnerTypes } from '../../services/runners/types.ts';
import type { composeBackups } from './backups.ts';
import type { Core } from './core.ts';
import type { composeJobs } from './jobs.ts';
import type { composeSecrets } from './secrets.ts';

/** Builds pools and runners, their job types, and the attempts that they make. */
export function composeRunners(
  core: Core,
  jobs: Pick<ReturnType<typeof composeJobs>, 'jobs' | 'jobAttempts' | 'jobSlots'>,
  backups: Pick<ReturnType<typeof composeBackups>, 'archives'>,
  secrets: Pick<ReturnType<typeof composeSecrets>, 'secretsForAttempt'>,
) {
  return {
    announcements: createAnnouncements(core),
    remoteAttempts: createRemoteAttempts({ ...core, ...jobs, ...secrets }),
    artifacts: createArtifacts({ ...core, ...jobs, ...backups }),
    remoteLines: createRemoteLines(core),
    pools: createPools(core),
    runners: createRunners(core),
    runnerTypes: createRunnerTypes(core),
    remoteTypes: createRemoteTypes(core),
  };
}
