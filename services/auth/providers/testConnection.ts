import type { Knex } from '../../../db/core/knex.ts';
import { User } from '../../../db/models/User.ts';
import { findMappings, type MappedRole } from '../../../db/auth/providers.ts';
import type { Commit } from '../../../db/commit.ts';
import type { Caller } from '../../../domain/shared/caller.ts';
import { groupsFrom, LOCAL_PROVIDER, type TestStep } from '../../../domain/auth/providers.ts';
import { PLATFORM } from '../../../domain/access/scope.ts';
import type { DispatchTask } from '../../../temporal/contracts.ts';
import type { createLdap, LdapConfig } from './kinds/ldap.ts';
import type { createOidc, OidcConfig } from './kinds/oidc.ts';
import type { createSaml, SamlConfig } from './kinds/saml.ts';
import type { Providers } from './providers.ts';
import type { Provider } from '../../../db/models/Provider.ts';

export type ProviderTest = ReturnType<typeof createProviderTest>;

/** `username` is looked up where a directory can do that; `sampleClaims` are what a provider would say of somebody. */
export type TestRequest = { username?: string; sampleClaims?: Record<string, unknown> };

export type TestReport = { ok: boolean; steps: TestStep[]; groups: string[]; roles: MappedRole[] };

type Deps = {
  db: Knex;
  commit: Commit<DispatchTask>;
  providers: Providers;
  ldap: ReturnType<typeof createLdap>;
  oidc: ReturnType<typeof createOidc>;
  saml: ReturnType<typeof createSaml>;
};

/** Tries a provider out, without signing anybody in. */
export function createProviderTest({ db, commit, providers, ldap, oidc, saml }: Deps) {
  async function run(
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
              message: `${count} enabled accounts.`,
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
    if (provider.kind === 'oidc') return oidc.groupsIn(config as OidcConfig, claims);
    if (provider.kind === 'saml') return saml.groupsIn(config as SamlConfig, claims);
    return groupsFrom(claims.groups);
  }

  return {
    /** Errors: `permission_denied`, `not_found`, `master_key_missing`. A provider that fails is a report, not an error. */
    async run(caller: Caller, id: string, request: TestRequest): Promise<TestReport> {
      const provider = await providers.readToTest(caller, id);
      const { steps, groups: found = [] } = await run(provider, request);
      const groups = [...new Set([...found, ...groupsOf(provider, request.sampleClaims)])];
      const ok = steps.every(({ status }) => status !== 'failed');
      // The secrets of the provider were used.
      await commit({ ...caller, tenantId: PLATFORM }, (work) => {
        work.audit('provider.test', { type: 'provider', id }, { after: { ok } });
      });
      return { ok, steps, groups, roles: await findMappings(db, id, groups) };
    },
  };
}
