import { answer, api, type Schemas } from '../api.ts';
import { notifyProblem } from '../notify.ts';
import { queryClient } from '../queryClient.ts';
import { broadcast, onMessage } from './channel.ts';
import {
  can,
  canAnywhere,
  canEverywhere,
  hasAllEvents,
  hasNoRole,
  heldAt,
  tenantsOf,
  whyNot,
} from './permissions.ts';
import { SUMMARY_KEY } from './tenant.ts';
import { signOut } from './tokens.ts';
import type { Session, Summary } from './useSession.ts';

/** Rights and tenant change rarely, and the service checks them with every request. */
const STALE_MS = 60_000;

/** The session behind what is on screen: who it is, and what the service says they may do. */
export const sessionQueries = {
  account: {
    queryKey: ['session', 'account'],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      answer(api.GET('/api/auth/session', { signal })),
    staleTime: STALE_MS,
  },
  summary: {
    queryKey: SUMMARY_KEY,
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      answer(api.GET('/api/rbac/summary', { signal })),
    staleTime: STALE_MS,
  },
} as const;

async function switchTenant(tenantId: string): Promise<void> {
  await answer(api.PUT('/api/auth/session', { body: { tenantId } }));
  broadcast({ kind: 'tenant' });
  await queryClient.invalidateQueries();
}

onMessage(({ kind }) => {
  // The tenant of the session is that of every tab.
  if (kind === 'tenant') void queryClient.invalidateQueries();
});

export const sessionOf = (summary: Summary, account: Schemas['User'] | undefined): Session => ({
  user: account ?? {
    id: summary.actorId,
    username: summary.actorId,
    displayName: summary.actorId,
  },
  account,
  tenant: summary.tenantId,
  tenants: tenantsOf(summary),
  summary,
  isGateway: account === undefined,
  hasNoRole: hasNoRole(summary),
  can: (permission, where) => can(summary, permission, where),
  canAnywhere: (permission) => canAnywhere(summary, permission),
  hasAllEvents: hasAllEvents(summary),
  canEverywhere: (permission) => canEverywhere(summary, permission),
  heldAt: (permission) => heldAt(summary, permission),
  whyNot: (permission, where) => whyNot(summary, permission, where),
  signOut: () => signOut().catch(notifyProblem),
  switchTenant,
});
