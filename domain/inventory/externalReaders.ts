import { RBAC_READERS, type Permission } from '../access/permissions.ts';

/**
 * Kinds of records outside the inventory that conflicts can name, each with the permissions of which
 * one lists them. Callers without it learn only that there is such a record.
 */
const EXTERNAL_READERS: ReadonlyMap<string, readonly Permission[]> = new Map<
  string,
  readonly Permission[]
>([
  ['assignments', RBAC_READERS],
  ['users', ['user:read']],
  ['webhooks', ['webhook:read']],
  ['schedules', ['schedule:read']],
  ['secrets', ['secret:read']],
  ['backups', ['backup:read']],
  ['workflows', ['workflow:read']],
  ['jobs', ['job:read']],
  ['legal-holds', ['hold:read']],
]);

/** The permissions that list records of this kind; none for an unknown kind, which nobody may see. */
export const externalReadersOf = (kind: string): readonly Permission[] =>
  EXTERNAL_READERS.get(kind) ?? [];
