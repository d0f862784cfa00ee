import type { Knex } from '../../../db/core/knex.ts';
import { User } from '../../../db/models/User.ts';
import { findMappings, type MappedRole } from '../../../db/auth/providers.ts';
import type { Commit } from '../../../db/core/commit.ts';
import type { Caller } from '../../../domain/shared/caller.ts';
import { parseGroups, LOCAL_PROVIDER, type TestStep } from '../../../domain/auth/providers.ts';
import { PLATFORM } from '../../../domain/access/scope.ts';
import { counted } from '../../../domain/shared/counted.ts';
import type { createLdap } from './kinds/ldap.ts';
import type { LdapConfig } from './kinds/ldapConfig.ts';
import type { createOidc, OidcConfig } from './kinds/oidc.ts';
import type { createSaml } from './kinds/saml.ts';
import type { SamlConfig } from './kinds/samlConfig.ts';
import type { Providers } from './providers.ts';
import type { Provider } from '../../../db/models/Provider.ts';

export type ConnectionTest = ReturnType<typeof createConnectionTest>;

/** `username` is searched in an LDAP directory. `sampleClaims` are claims or attributes to map. */
export type TestRequest = { username?: string; sampleClaims?: Record<string, unknown> };

export type TestReport = { ok: boolean; steps: TestStep[]; groups: string[]; roles: MappedRole[] };

type Deps = {
  db: Knex;
  commit: Commit;
  providers: Providers;
  ldap: ReturnType<typeof createLdap>;
  oidc: ReturnType<typeof createOidc>;
  saml: ReturnType<typeof createSaml>;
};

/** Tests the connection to a provider without signing anyone in. */
export function createConnectionTest({ db, commit, providers, ldap, oidc, saml }: Deps) {
  async function runSteps(
    provider: Provider,
    { username }: TestRequest,
  ): Promise<{ steps: TestStep[]; groups?: string[] }> {
    const config = providers.openConfig(provider);
    switch (provider.kind) {
      case 'ldap':
        return ldap.test(config as LdapConfig, username);
      case 'oidc':
        return oidc.test(config as OidcConfig);
      case 'saml':
        return saml.test(config as SamlConfig);
      case 'local': {
        const count = await User.query(db)
          .where({ provider_id: LOCAL_PROVIDER, enabled: true })
          .resultSize();
        return {
          steps: [
            {
              name: 'accounts',
              status: 'passed',
              message: `${counted(count, 'enabled account')}.`,
              durationMs: 0,
            },
          ],
        };
      }
    }
  }

  function groupsOf(provider: Provider, claims: Record<string, unknown> | undefined): string[] {
    if (claims === undefined) return [];
    const config = providers.openConfig(provider);
    if (provider.kind === 'oidc') return oidc.groupsFromClaims(config as OidcConfig, claims);
    if (provider.kind === 'saml') return saml.groupsFromClaims(config as SamlConfig, claims);
    return parseGroups(claims.groups);
  }

  return {
    /**
     * Errors: `permission_denied`, `not_found`, `master_key_missing`. A failing provider is
     * reported in the result, not thrown.
     */
    async run(caller: Caller, id: string, request: TestRequest): Promise<TestReport> {
      const provider = await providers.readForTest(caller, id);
      const { steps, groups: found = [] } = await runSteps(provider, request);
      const groups = [...new Set([...found, ...groupsOf(provider, request.sampleClaims)])];
      const ok = steps.every(({ status }) => status !== 'failed');
      // Audited because the test uses the provider's secrets.
      await commit({ ...caller, tenantId: PLATFORM }, (work) => {
        work.audit('provider.test', { type: 'provider', id }, { after: { ok } });
      });
      return { ok, steps, groups, roles: await findMappings(db, id, groups) };
    },
  };
}
