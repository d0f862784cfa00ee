import type { parseArgs } from 'node:util';
import { PERMISSIONS, type Permission } from '../../domain/access/permissions.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import { statusOf, type TokenDetails } from '../../domain/auth/tokens.ts';
import { AppError, ignoreConflict } from '../../domain/shared/errors.ts';
import { systemCaller } from '../../domain/shared/caller.ts';
import { DAY_MS } from '../../domain/shared/durations.ts';
import { pageOf, type ListCondition, type ListKey } from '../../domain/shared/lists.ts';
import type { TokenRequest } from '../../services/auth/apiTokens/tokens.ts';
import type { Composition } from '../composition/index.ts';
import type { Command } from './command.ts';
import { print, readArguments, UsageError } from './program.ts';

const PAGE = 200;

const OPTIONS = {
  service: { type: 'string' },
  tenant: { type: 'string' },
  role: { type: 'string', multiple: true },
  name: { type: 'string' },
  permissions: { type: 'string' },
  'job-types': { type: 'string' },
  networks: { type: 'string' },
  'read-only': { type: 'boolean' },
  days: { type: 'string' },
} as const;

type Limits = Pick<TokenRequest, 'permissions' | 'jobTypes' | 'allowedNetworks' | 'readOnly'>;

type Values = ReturnType<typeof parseArgs<{ options: typeof OPTIONS }>>['values'];

export const token: Command = {
  usage: `token create --service <name> [--tenant <id>] [--role <id>]… [--permissions a,b] [--job-types a,b] [--networks a,b] [--read-only] [--days n] [--name <text>]: creates an API token of a service account, and the account if there is none; prints the token
  token list [--service <name>] [--tenant <id>]: lists API tokens
  token revoke <id>: revokes an API token`,
  read(args) {
    const { values, words } = readArguments(args, { options: OPTIONS, words: 2 });
    const work = actionOf(values, words);
    return async (deps) => {
      try {
        return await work(deps);
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        print(error.message);
        return 1;
      }
    };
  },
};

function actionOf(values: Values, [action, id]: readonly string[]) {
  if (action === 'create' && id === undefined) return create(values);
  if (action === 'list' && id === undefined) return (deps: Composition) => list(deps, values);
  if (action === 'revoke' && id !== undefined) return (deps: Composition) => revoke(deps, id);
  throw new UsageError('An action is needed: create, list or revoke <id>');
}

const callerAt = (tenantId = PLATFORM) => systemCaller(tenantId, 'token-command');

const listOf = (text: string | undefined): string[] | undefined =>
  text
    ?.split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');

/** Error: `UsageError` when a name is not that of a permission. */
function permissionsOf(text: string | undefined): Permission[] | null {
  const names = listOf(text);
  if (!names) return null;
  const known = new Set<string>(PERMISSIONS);
  const unknown = names.find((name) => !known.has(name));
  if (unknown !== undefined) throw new UsageError(`There is no permission ${unknown}`);
  return PERMISSIONS.filter((permission) => names.includes(permission));
}

/** Error: `UsageError`. */
function daysOf(text: string | undefined): number | undefined {
  const days = text === undefined ? undefined : Number(text);
  if (days !== undefined && !(Number.isInteger(days) && days > 0))
    throw new UsageError('--days is a positive integer');
  return days;
}

async function findAccount(
  { serviceAccounts }: Composition,
  name: string,
  tenantId: string | undefined,
) {
  const ofTenant: ListCondition[] =
    tenantId === undefined
      ? []
      : [{ field: 'tenantId', kind: 'text', nullable: false, operator: 'in', values: [tenantId] }];
  const request = { ...pageOf(2), where: ofTenant };
  const { items } = await serviceAccounts.list(callerAt(), { name }, request);
  if (items.length > 1)
    throw new AppError(
      'conflict',
      `Several tenants have a service account named ${name}: add --tenant.`,
    );
  return items[0];
}

function create(values: Values) {
  const { service } = values;
  if (service === undefined) throw new UsageError('--service <name> is needed');
  const limits = {
    permissions: permissionsOf(values.permissions),
    jobTypes: listOf(values['job-types']) ?? null,
    allowedNetworks: listOf(values.networks) ?? null,
    readOnly: values['read-only'] ?? false,
  };
  const days = daysOf(values.days);
  return (deps: Composition) => createToken(deps, service, { ...values, limits, days });
}

async function createToken(
  deps: Composition,
  service: string,
  request: Pick<Values, 'tenant' | 'role' | 'name'> & { limits: Limits; days: number | undefined },
): Promise<number> {
  const { tenant, role: roles = [], name = 'command line', limits, days } = request;
  const known = await findAccount(deps, service, tenant);
  const wanted = { name: service, tenantId: tenant ?? PLATFORM };
  const { id } = known ?? (await deps.serviceAccounts.create(callerAt(), wanted));
  const account = await deps.serviceAccounts.findToChange(callerAt(), id);
  for (const roleId of roles)
    await deps.grants
      .create(callerAt(account.tenantId), { userId: id }, roleId, { tenantId: account.tenantId })
      .catch(ignoreConflict);
  const made = await deps.apiTokens.createForService(callerAt(account.tenantId), id, {
    name,
    ...limits,
    ...(days !== undefined && { expiresAt: new Date(Date.now() + days * DAY_MS) }),
  });
  print(known ? `The service account ${service} exists.` : `The service account was created.`);
  print('');
  print(`Account  ${id} in tenant ${account.tenantId}`);
  print(`Token    ${made.token.id}, expires ${made.token.expiresAt.toISOString()}`);
  print(`Secret   ${made.secret}`);
  print('');
  print('The secret is shown only now.');
  return 0;
}

async function list(deps: Composition, { service, tenant }: Values): Promise<number> {
  const account = service === undefined ? undefined : await findAccount(deps, service, tenant);
  if (service !== undefined && !account) {
    print(`There is no service account named ${service}.`);
    return 1;
  }
  const filter = account ? { ownerId: account.id } : {};
  let after: ListKey | undefined;
  do {
    const page = await deps.apiTokens.list(callerAt(), filter, pageOf(PAGE, after));
    for (const each of page.items)
      if (tenant === undefined || each.tenantId === tenant) print(lineOf(each));
    after = page.next ?? undefined;
  } while (after !== undefined);
  return 0;
}

const lineOf = (each: TokenDetails): string =>
  [
    each.id,
    statusOf(each, new Date()).padEnd(8),
    each.userId,
    `expires ${each.expiresAt.toISOString()}`,
    each.lastUsedAt ? `used ${each.lastUsedAt.toISOString()}` : 'never used',
    each.name,
  ].join('  ');

async function revoke({ apiTokens }: Composition, id: string): Promise<number> {
  await apiTokens.revoke(callerAt(), id);
  print(`${id} is revoked.`);
  return 0;
}
