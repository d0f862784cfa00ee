import type { PlannedChange } from '../../domain/inventory/planSnapshot.ts';
import type { Planned } from '../../domain/inventory/planning.ts';

/** A valid mutation, as planned, that makes one change. */
export const plannedChange = (
  { resource, id, before, after }: PlannedChange,
  effects: Planned['effects'] = [],
): Planned => ({
  resource,
  operation: after ? (before ? 'update' : 'create') : 'delete',
  candidateRecord: {},
  pointsInto: 'record',
  errors: [],
  conflicts: [],
  warnings: [],
  presentScopes: [],
  requiredScopes: [],
  revoked: [],
  denied: [],
  unchanged: false,
  effects,
  subject: { resource, id, before, after },
});
