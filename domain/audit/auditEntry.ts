/** An entry of the audit log. `position` and `hash` are null until it is sealed. */
export type AuditEntryDetails = {
  id: string;
  tenantId: string;
  actorId: string;
  /** How the actor was authenticated: see `viaOf`. */
  via: string;
  action: string;
  outcome: 'done' | 'denied' | 'failed';
  subjectType: string;
  subjectId: string;
  before: object | null;
  after: object | null;
  requestId: string;
  address: string | null;
  at: Date;
  position: number | null;
  hash: Buffer | null;
};
