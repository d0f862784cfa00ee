import { createLegalHolds } from '../../services/retention/legalHolds.ts';
import type { Core } from './core.ts';

/** Builds what decides how long records are kept. */
export const composeRetention = (core: Core) => ({ legalHolds: createLegalHolds(core) });
