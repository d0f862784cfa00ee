import { tablesOf } from '../../db/backups/catalog.ts';
import type { Section } from '../../domain/backups.ts';

export {
  backupWorkflowId as backupWorkflowOf,
  restoreWorkflowId as restoreWorkflowOf,
} from '../../temporal/contracts.ts';

/** The tables of a section. */
export const tablesIn = (section: Section): string[] => tablesOf([section]).map(({ name }) => name);
