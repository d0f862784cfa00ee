import { createContext, use } from 'react';
import type { Where } from '../../parts/where.ts';
import type { Schemas } from '../api.ts';

export type Summary = Schemas['PermissionSummary'];

export type Session = {
  /** Behind a gateway, the id that it says. */
  user: { id: string; username: string; displayName: string };
  /** The account at Holdfast; undefined behind a gateway. */
  account: Schemas['User'] | undefined;
  /** The tenant that new records belong to. */
  tenant: string;
  /** Tenants in which the user has a grant; undefined if it may be any. */
  tenants: readonly string[] | undefined;
  summary: Summary;
  isGateway: boolean;
  /** Nobody has assigned a role to the user, who may therefore do nothing. */
  hasNoRole: boolean;
  /** Whether the service would allow it; without `where`, in the tenant of the session. */
  can(permission: string, where?: Where): boolean;
  /** Whether the user holds the permission anywhere: if not, what it is about is not shown. */
  canAnywhere(permission: string): boolean;
  /** Whether the user holds it everywhere, so that nothing is left out of what it lets them see. */
  canEverywhere(permission: string): boolean;
  /** Whether the stream of events has all events about what the user may see. */
  hasAllEvents: boolean;
  /** The sites and devices where the user holds it by itself. */
  heldAt(permission: string): readonly Where[];
  /** Why the service would not allow it, in words; undefined if it would. */
  whyNot(permission: string, where?: Where): string | undefined;
  /** Signs out, or shows why that has failed. */
  signOut(): Promise<void>;
  switchTenant(tenantId: string): Promise<void>;
};

export const SessionContext = createContext<Session | undefined>(undefined);

/** The session of the user. The pages inside the frame have one. */
export function useSession(): Session {
  const session = use(SessionContext);
  if (session === undefined) throw new Error('There is no session outside the frame');
  return session;
}
