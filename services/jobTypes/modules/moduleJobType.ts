import type { TObject } from 'typebox';
import { defineJobType, type JobType } from '../../../domain/jobs/jobType.ts';
import { MODULES_POOL } from '../../../domain/runners/definition.ts';
import type { GuardedHttp } from '../../../platform/guardedHttp.ts';
import type { Artifacts } from '../../runners/artifacts.ts';
import type { SecretsForAttempt } from '../../secrets/forAttempt.ts';
import { createArtifactTool } from './artifactTool.ts';
import { DEFAULT_TIMEOUT_MS } from './definition.ts';
import { createHttpTool } from './httpTool.ts';
import { createInventoryTools, type InventoryToolDeps } from './inventoryTools.ts';
import { JOB_TYPE_MARK, type ModuleJobType } from './jobType.ts';
import { runModule } from './run.ts';

export type ModuleDeps = InventoryToolDeps & {
  http: Pick<GuardedHttp, 'request'>;
  artifacts: Pick<Artifacts, 'putOwn'>;
  secretsForAttempt: SecretsForAttempt;
};

/** The job type of a module, whose definition has been checked. */
export function moduleJobType(
  { [JOB_TYPE_MARK]: definition }: ModuleJobType,
  deps: ModuleDeps,
): JobType {
  const { name, summary, access, permission, retry, isRepeatable } = definition;
  return defineJobType({
    name,
    summary,
    payload: definition.payload as TObject,
    targets: definition.targets ?? 'none',
    access: access ?? 'granted',
    permission: permission ?? null,
    lane: 'activity',
    timeoutMs: definition.timeoutMs ?? DEFAULT_TIMEOUT_MS,
    ...(retry && { retry }),
    // It runs where jobs are created: an error of the module must not fail that.
    ...(isRepeatable && { isRepeatable: (payload) => isTrue(() => isRepeatable(payload)) }),
    async run(payload, tools) {
      const { jobId, attempt, signal } = tools;
      const asked = { jobId, attempt, pool: MODULES_POOL, wanted: definition.secrets ?? {} };
      const secrets = await deps.secretsForAttempt(tools.caller, asked);
      return runModule(definition, payload, {
        jobId,
        tenantId: tools.caller.tenantId,
        attempt,
        startedAt: tools.startedAt,
        source: tools.source,
        target: tools.target,
        signal,
        log: tools.log,
        progress: tools.progress,
        http: createHttpTool(deps.http, signal),
        inventory: createInventoryTools(deps, tools),
        artifact: createArtifactTool((file) => deps.artifacts.putOwn(tools, file), signal),
        secrets,
      });
    },
  });
}

/** False for everything else than true: work of unknown kind is not repeated. */
function isTrue(answer: () => unknown): boolean {
  try {
    return answer() === true;
  } catch {
    return false;
  }
}
