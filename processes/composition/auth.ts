import { createProviderOutbound } from '../../platform/providerOutbound.ts';
import { createGrants } from '../../services/access/grants.ts';
import { createAccessReport } from '../../services/access/report.ts';
import { createQuotas } from '../../services/access/quotas.ts';
import { createRoles } from '../../services/access/roles.ts';
import { createAuditLog } from '../../services/audit/auditLog.ts';
import { createAuditSealer } from '../../services/audit/sealer.ts';
import { createTokenAuthentication } from '../../services/auth/apiTokens/authentication.ts';
import { createApiTokens } from '../../services/auth/apiTokens/tokens.ts';
import { createTokenUses } from '../../services/auth/apiTokens/uses.ts';
import { createBootstrapAdmin } from '../../services/auth/bootstrapAdmin.ts';
import { createLoginSession } from '../../services/auth/loginSession.ts';
import { createLoginThrottle } from '../../services/auth/loginThrottle.ts';
import { createLdap } from '../../services/auth/providers/kinds/ldap.ts';
import { createOidc } from '../../services/auth/providers/kinds/oidc.ts';
import { createSaml, createSamlThreads } from '../../services/auth/providers/kinds/saml.ts';
import { createProviders } from '../../services/auth/providers/providers.ts';
import { createProviderWaits } from '../../services/auth/providers/waits.ts';
import { createConnectionTest } from '../../services/auth/providers/testConnection.ts';
import { createServiceAccounts } from '../../services/auth/serviceAccounts.ts';
import { createSessions } from '../../services/auth/sessions.ts';
import { createSignIn } from '../../services/auth/signIn.ts';
import { createSso } from '../../services/auth/sso.ts';
import { createUsers } from '../../services/auth/users.ts';
import { createUserSessions } from '../../services/auth/userSessions.ts';
import { createCancelRevoked } from '../../services/jobs/cancelRevoked.ts';
import type { Core } from './core.ts';

/** Builds authentication, access management and the audit log. */
export function composeAuth(base: Core) {
  const core = { ...base, cancelRevoked: createCancelRevoked(base) };
  const outbound = createProviderOutbound(core.config.outboundAllow, core.ownEndpoints);
  const samlThreads = createSamlThreads();
  const kinds = {
    ldap: createLdap(outbound),
    oidc: createOidc(outbound),
    saml: createSaml(outbound, samlThreads),
  };
  const loginThrottle = createLoginThrottle(core);
  const sessions = createSessions({ ...core, limits: core.config });
  const loginSession = createLoginSession({ ...core, sessions });
  const providers = createProviders(core);
  const tokenUses = createTokenUses(core);
  const users = createUsers({ ...core, loginThrottle });
  const providerWaits = createProviderWaits();
  const login = { ...core, ...kinds, loginThrottle, loginSession, providers, providerWaits };
  return {
    sessions,
    tokenUses,
    tokenAuthentication: createTokenAuthentication({ ...core, tokenUses }),
    apiTokens: createApiTokens(core),
    serviceAccounts: createServiceAccounts(core),
    providers,
    roles: createRoles(core),
    grants: createGrants(core),
    accessReport: createAccessReport(core),
    quotas: createQuotas(core),
    users,
    userSessions: createUserSessions({ ...core, users }),
    bootstrapAdmin: createBootstrapAdmin({ ...core, loginThrottle }),
    signIn: createSignIn(login),
    sso: createSso(login),
    connectionTest: createConnectionTest({ ...core, ...kinds, providers }),
    auditLog: createAuditLog(core),
    auditSealer: createAuditSealer(core),
    closeProviders: () => Promise.all([outbound.close(), samlThreads.close()]),
  };
}
