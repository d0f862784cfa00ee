import { parseArgs } from 'node:util';
import { PERMISSIONS, type Permission } from '../../domain/access/permissions.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import { statusOf, type TokenDetails } from '../../domain/auth/tokens.ts';
import { AppError } from '../../domain/shared/errors.ts';
import { systemCaller } from '../../domain/shared/caller.ts';
import { pageOf, type ListCondition, type ListKey } from '../../domain/shared/lists.ts';
import type { Composition } from '../composition/index.ts';
import { EXIT_USAGE, print, type Command } from './command.ts';

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

type Values = ReturnType<typeof parseArgs<{ options: typeof OPTIONS }>>['values'];

export const token: Command = {
  usage: `token create --service <name> [--tenant <id>] [--role <id>]… [--permissions a,b] [--job-types a,b] [--networks a,b] [--read-only] [--days n] [--name <text>]: creates an API token of a service account, and the account if there is none; prints the token
  token list [--service <name>] [--tenant <id>]: lists API tokens
  token revoke <id>: revokes an API token`,
  async run(deps, args) {
    const parsed = parse(args);
    if (!parsed) return EXIT_USAGE;
    const [action, ...rest] = parsed.positionals;
    const { values } = parsed;
    try {
      if (action === 'create' && rest.length === 0) return await create(deps, values);
      if (action === 'list' && rest.length === 0) return await list(deps, values);
      const [id] = rest;
      if (action === 'revoke' && id !== undefined && rest.length === 1)
        return await revoke(deps, id);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      print(error.message);
      return 1;
    }
    return EXIT_USAGE;
  },
};

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
  } catch {
    return undefined;
  }
}

const callerAt = (tenantId = PLATFORM) => systemCaller(tenantId, 'token-command');

const listOf = (text: string | undefined): string[] | undefined =>
  text
    ?.split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');

/** Undefined when a name is not that of a permission. */
function permissionsOf(text: string | undefined): Permission[] | null | undefined {
  const names = listOf(text);
  if (!names) return null;
  const known = PERMISSIONS.filter((permission) => names.includes(permission));
  return known.length === names.length ? known : undefined;
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

async function create(deps: Composition, values: Values): Promise<number> {
  const { service, tenant, role: roles = [], name = 'command line', days } = values;
  const permissions = permissionsOf(values.permissions);
  const lifetime = days === undefined ? undefined : Number(days);
  const isValid = lifetime === undefined || (Number.isInteger(lifetime) && lifetime > 0);
  if (service === undefined || permissions === undefined || !isValid) return EXIT_USAGE;
  const known = await findAccount(deps, service, tenant);
  const request = { name: service, tenantId: tenant ?? PLATFORM };
  const { id } = known ?? (await deps.serviceAccounts.create(callerAt(), request));
  const account = await deps.serviceAccounts.findToChange(callerAt(), id);
  for (const roleId of roles)
    await deps.grants
      .create(callerAt(account.tenantId), { userId: id }, roleId, { tenantId: account.tenantId })
      .catch(ignoreConflict);
  const made = await deps.apiTokens.createForService(callerAt(account.tenantId), id, {
    name,
    permissions,
    jobTypes: listOf(values['job-types']) ?? null,
    allowedNetworks: listOf(values.networks) ?? null,
    readOnly: values['read-only'] ?? false,
    ...(lifetime !== undefined && { expiresAt: new Date(Date.now() + lifetime * 86_400_000) }),
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

/** The role is already assigned. */
function ignoreConflict(error: unknown): void {
  if (!(error instanceof AppError) || error.code !== 'conflict') throw error;
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
