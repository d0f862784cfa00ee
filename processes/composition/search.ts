import type { Approvals } from '../../services/approvals/approvals.ts';
import { createSearch } from '../../services/search/search.ts';
import type { Core } from './core.ts';

/** Builds the search over all areas. */
export const composeSearch = (core: Core, { approvals }: { approvals: Approvals }) =>
  createSearch({ ...core, approvals });
