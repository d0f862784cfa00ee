import { describe, expect, test } from '@jest/globals';
import { PERMISSIONS } from '../../../domain/access/permissions.ts';
import { BUILT_IN_ROLES } from '../../../domain/access/roles.ts';
import { validateTokensSearch } from '../../../ui/app/account/tokensSearch.ts';
import { validateTexts } from '../../../ui/areas/access/accessSearch.ts';
import { accountsListQuery } from '../../../ui/areas/access/accountsSearch.ts';
import { grantText } from '../../../ui/areas/access/grants/grantText.ts';
import { missingOfScope, scopeIds, scopeOfText } from '../../../ui/areas/access/grants/scopes.ts';
import {
  changesAny,
  configChange,
  configRequest,
  secretsRequest,
  storedSecrets,
  withoutSecrets,
} from '../../../ui/areas/access/providers/providerConfig.ts';
import {
  registration,
  sampleClaims,
  serverText,
} from '../../../ui/areas/access/providers/providerText.ts';
import { differ, matrixOf } from '../../../ui/areas/access/roles/permissionMatrix.ts';
import { listedRoles } from '../../../ui/areas/access/roles/roleList.ts';
import { accountState } from '../../../ui/areas/access/users/userText.ts';

describe('the matrix of permissions', () => {
  test('has each permission once', () => {
    const shown = matrixOf(PERMISSIONS).flatMap(({ common, others }) => [
      ...common.filter((permission) => permission !== undefined),
      ...others,
    ]);
    expect([...shown].sort()).toEqual([...PERMISSIONS].sort());
  });

  test('has a row for each area, with the verbs that others do not have in one column', () => {
    expect(
      matrixOf(['job:read', 'job:write', 'job:cancel', 'audit:read', 'audit:archive']),
    ).toEqual([
      { area: 'job', label: 'Jobs', common: ['job:read', 'job:write'], others: ['job:cancel'] },
      {
        area: 'audit',
        label: 'Audit log',
        common: ['audit:read', undefined],
        others: ['audit:archive'],
      },
    ]);
    expect(matrixOf(['newArea:read'])[0]?.label).toBe('New area');
  });

  test('says where roles differ', () => {
    expect(differ([1, 1], (value) => value > 0)).toBe(false);
    expect(differ([1, 0], (value) => value > 0)).toBe(true);
  });
});

test('roles are listed by kind, text, all chosen permissions, and names of job types', () => {
  const builtIn = [...BUILT_IN_ROLES.values()].map(({ id, name, permissions, jobTypes }) => ({
    ...{ id, name, builtIn: true, permissions: [...permissions], jobTypes },
  }));
  const own = { id: 'net', name: 'Nets', builtIn: false, permissions: [], jobTypes: [] };
  const ids = (search: Parameters<typeof listedRoles>[1]) =>
    listedRoles([...builtIn, own], search).map(({ id }) => id);
  expect(ids({ kind: 'own' })).toEqual(['net']);
  expect(ids({ text: ' NET' })).toEqual(['net']);
  expect(ids({ has: 'audit:read,job:read' })).toEqual(['platform-admin', 'auditor']);
  expect(ids({ jobTypes: 'on' })).toEqual(['platform-admin']);
  expect(ids({})).toHaveLength(6);
});

describe('where a grant holds', () => {
  test('is the narrowest id of an address', () => {
    expect(scopeIds(scopeOfText({}))).toEqual({ tenantId: 'platform' });
    expect(scopeIds(scopeOfText({ tenantId: 'platform' }))).toEqual({ tenantId: 'platform' });
    expect(scopeIds(scopeOfText({ tenantId: 'red' }))).toEqual({ tenantId: 'red' });
    expect(scopeIds(scopeOfText({ tenantId: 'red', siteId: 'sit_1' }))).toEqual({
      siteId: 'sit_1',
    });
    expect(scopeIds(scopeOfText({ siteId: 'sit_1', deviceId: 'dev_1' }))).toEqual({
      deviceId: 'dev_1',
    });
  });

  test('must be complete before it is sent: an empty choice is not everywhere', () => {
    const scope = { ...scopeOfText({}), tenantId: ' ' };
    expect(missingOfScope(scope)).toBeUndefined();
    for (const level of ['tenant', 'site', 'device'] as const)
      expect(missingOfScope({ ...scope, level })).toBe(`Choose a ${level}.`);
  });
});

test('a grant is a sentence, for a person and for a group', () => {
  const at = { roleId: 'operator', tenantId: 'red', siteId: null, deviceId: null };
  const names = {
    people: { usr_1: { displayName: 'Ada' } },
    labels: { roles: { operator: 'Operator' }, providers: { idp_1: 'Company' } },
  };
  expect(grantText({ ...at, userId: 'usr_1' }, names)).toBe(
    'Ada has the role Operator at tenant red',
  );
  const group = { providerId: 'idp_1', externalGroup: 'ops', tenantId: 'platform' };
  expect(grantText({ ...at, ...group }, names)).toBe(
    'the members of the group ops of Company have the role Operator everywhere',
  );
});

describe('the settings of a provider', () => {
  const secrets = ['bindPassword'];
  const config = { url: 'ldaps://one', bindPassword: '********', startTls: false };

  test('are edited without the secrets', () => {
    expect(withoutSecrets(config, secrets)).toEqual({ url: 'ldaps://one', startTls: false });
    expect(storedSecrets(config, [{ name: 'bindPassword' }])).toEqual(['bindPassword']);
    expect(storedSecrets({ url: 'x' }, [{ name: 'bindPassword' }])).toEqual([]);
  });

  test('are sent as what has changed; what was emptied is taken away', () => {
    const started = { url: 'ldaps://one', groupBaseDn: 'dc=x', scopes: ['a'] };
    const change = configChange({ url: 'ldaps://two', scopes: ['a'] }, started);
    expect(change).toEqual({ url: 'ldaps://two', groupBaseDn: null });
    expect(changesAny(change, ['url'])).toBe(true);
    expect(changesAny({ groupBaseDn: null }, ['url'])).toBe(false);
    expect(configChange(started, started)).toEqual({});
    expect(configRequest(started, started, {})).toEqual({});
    expect(configRequest({ ...started, url: 'ldaps://two' }, started, {})).toEqual({
      config: { url: 'ldaps://two' },
    });
  });

  test('have secrets only if these were typed, or are taken away', () => {
    expect(secretsRequest({ one: 'typed', two: '', three: undefined, four: null })).toEqual({
      one: 'typed',
      four: null,
    });
  });

  test('say where it is, and what it must know of Holdfast', () => {
    const oidc = { id: 'idp_1', kind: 'oidc', config: { issuer: 'https://login' } };
    expect(serverText(oidc)).toBe('https://login');
    expect(registration(oidc, 'https://hf')).toEqual([
      { label: 'Redirect URI', value: 'https://hf/api/auth/oidc/callback' },
    ]);
    const second = { ...oidc, config: { ownCallback: true } };
    expect(registration(second, 'https://hf')[0]?.value).toMatch(/callback\/idp_1$/);
    const saml = { id: 'idp_2', kind: 'saml', config: {} };
    expect(registration(saml, 'https://hf').map(({ value }) => value)).toEqual([
      'https://hf/api/auth/saml/metadata/idp_2',
      'https://hf/api/auth/saml/callback',
      'https://hf/api/auth/saml/metadata/idp_2',
    ]);
  });

  test('name the claim that a test sends the groups in', () => {
    const keycloak = { id: 'i', kind: 'oidc', config: { groupsClaim: 'realm_access.roles' } };
    expect(sampleClaims(keycloak, ['a'])).toEqual({ realm_access: { roles: ['a'] } });
    const saml = { id: 'i', kind: 'saml', config: { groupsAttribute: 'member.of' } };
    expect(sampleClaims(saml, ['a'])).toEqual({ 'member.of': ['a'] });
    expect(sampleClaims({ id: 'i', kind: 'ldap', config: {} }, ['a'])).toEqual({ groups: ['a'] });
  });
});

test('filters of accounts become one value each; both states are none', () => {
  const query = { q: ['ada'], enabled: ['true'], tenantId: ['red'] } as unknown as { q?: string };
  expect(accountsListQuery(query)).toEqual({ q: 'ada', enabled: true, tenantId: ['red'] });
  const both = { enabled: ['true', 'false'] } as unknown as { enabled?: boolean };
  expect(accountsListQuery(both)).toEqual({});
});

test('addresses keep what the pages know', () => {
  expect(validateTokensSearch({ tokens: 'revoked' })).toEqual({ tokens: 'revoked' });
  expect(validateTokensSearch({ tokens: 'stolen' })).toEqual({});
  expect(validateTexts('from')({ from: '', other: 'x' })).toEqual({ from: undefined });
});

test('a disabled account is disabled, whatever its password', () => {
  expect(accountState({ enabled: false, mustChangePassword: true })).toBe('disabled');
  expect(accountState({ enabled: true, mustChangePassword: true })).toBe('must_change_password');
  expect(accountState({ enabled: true })).toBe('active');
});
