/** A record that prevents a restore. `other` is the key of the record that it refers to. */
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
};
