import { readRetentionState } from '../../db/retention/state.ts';
import { createLegalHolds } from '../../services/retention/legalHolds.ts';
import { createLogMonths } from '../../services/retention/logMonths.ts';
import { createRetentionPreviews } from '../../services/retention/preview.ts';
import { createPurge } from '../../services/retention/purge.ts';
import { createRetentionSettings } from '../../services/retention/settings.ts';
import type { Core } from './core.ts';

/** Builds what decides how long records are kept, and the purge of what is kept no longer. */
export function composeRetention(core: Core) {
  core.metrics.measureRetention(() => readRetentionState(core.db));
  const retentionSettings = createRetentionSettings(core);
  return {
    legalHolds: createLegalHolds(core),
    retentionSettings,
    retentionPreviews: createRetentionPreviews({ ...core, retentionSettings }),
    purge: createPurge(core),
    logMonths: createLogMonths(core),
  };
}
