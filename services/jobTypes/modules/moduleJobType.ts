import type { TObject } from 'typebox';
import { defineJobType, type JobType } from '../../../domain/jobs/jobType.ts';
import type { GuardedHttp } from '../../../platform/guardedHttp.ts';
import { DEFAULT_TIMEOUT_MS } from './definition.ts';
import { createHttpTool } from './httpTool.ts';
import { createInventoryTools, type InventoryToolDeps } from './inventoryTools.ts';
import { JOB_TYPE_MARK, type ModuleJobType } from './jobType.ts';
import { runModule } from './run.ts';

export type ModuleDeps = InventoryToolDeps & { http: Pick<GuardedHttp, 'request'> };

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
    run: (payload, tools) =>
      runModule(definition, payload, {
        jobId: tools.jobId,
        tenantId: tools.caller.tenantId,
        attempt: tools.attempt,
        startedAt: tools.startedAt,
        source: tools.source,
        target: tools.target,
        signal: tools.signal,
        log: tools.log,
        progress: tools.progress,
        http: createHttpTool(deps.http, tools.signal),
        inventory: createInventoryTools(deps, tools),
      }),
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
