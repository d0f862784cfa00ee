import { createStartArchives } from '../../services/audit/startArchives.ts';
import { createTokenKeeper } from '../../services/auth/apiTokens/keeper.ts';
import { createHousekeeping } from '../../services/operations/housekeeping.ts';
import { createStartPurge } from '../../services/retention/startPurge.ts';
import { createWatchRunners } from '../../services/runners/watch.ts';
import type { Core } from './core.ts';

/** Builds the periodic work of the installation. */
export const composeOperations = (core: Core) => ({
  housekeeping: createHousekeeping({
    ...core,
    startPurge: createStartPurge(core),
    startArchives: createStartArchives(core),
    watchRunners: createWatchRunners(core),
    keepTokens: createTokenKeeper(core),
  }),
});
