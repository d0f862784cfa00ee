import type { Scope } from '../../domain/access/scope.ts';
import type { PlannedTable, RestorePlan } from './restorePlan.ts';

/**
 * A restore of one tenant, and of its tables those with records that it creates or changes. `writable`: where
 * the owner of the restore may write in the inventory.
 */
export type TenantRestore = {
  plan: RestorePlan;
  tenantId: string;
  written: readonly PlannedTable[];
  writable: Scope;
};

/**
 * A record that prevents a restore. `other` is the key of the record that it refers to. `tenantId`: whose
 * record is named, if that is not one of the backup.
 */
export type RestoreConflict = {
  code:
    | 'still_referenced'
    | 'missing_reference'
    | 'owned_by_other_tenant'
    | 'legal_hold'
    | 'not_shared'
    | 'not_assigned'
    | 'already_assigned';
  table: string;
  key: string;
  other: string;
  tenantId?: string;
};
