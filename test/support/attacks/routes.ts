import type { Route } from '../../../api/http/route.ts';
import { RESOURCES } from '../../../domain/inventory/resources/index.ts';
import { assertDefined } from '../../../domain/shared/assert.ts';
import type { SharedEstate, TenantEstate } from './tenantEstate.ts';

/** Records by their kind. */
type Estate = Readonly<Partial<TenantEstate & SharedEstate>>;

/**
 * What the id in a path is of, by the path before it; for the inventory it is the resource. A new route with an id needs a
 * line here, and a new kind of record one in `seedTenantEstate`.
 */
const TARGETS: Readonly<Record<string, keyof Estate>> = {
  '/api/audit': 'audit',
  '/api/auth/providers': 'provider',
  '/api/auth/sessions': 'session',
  '/api/auth/tokens': 'token',
  '/api/backup': 'backup',
  '/api/deliveries': 'delivery',
  '/api/events': 'event',
  '/api/inventory/imports': 'import',
  '/api/job-types': 'jobType',
  '/api/jobs': 'job',
  '/api/legal-holds': 'hold',
  '/api/pools': 'pool',
  '/api/quotas': 'tenants',
  '/api/retention': 'tenants',
  '/api/rbac/assignments': 'assignment',
  '/api/rbac/provider-mappings': 'mapping',
  '/api/rbac/roles': 'role',
  '/api/runner/jobs': 'job',
  '/api/runners': 'runner',
  '/api/schedules': 'schedule',
  '/api/schedules/logs': 'run',
  '/api/secrets': 'secret',
  '/api/service-accounts': 'service',
  '/api/users': 'user',
  '/api/views': 'view',
  '/api/webhooks': 'webhook',
  '/api/workflows': 'approval',
};

/** The id in `estate` for the path of a route; undefined if the estate has none of that kind. */
export function targetOf({ path }: Route, estate: Estate): string | undefined {
  const collection = path.split('/{')[0] ?? '';
  const resource = collection.replace('/api/inventory/', '');
  const kind = Object.hasOwn(RESOURCES, resource)
    ? (resource as keyof Estate)
    : assertDefined(TARGETS[collection], `${path} in TARGETS of test/support/attacks/routes.ts`);
  return estate[kind];
}

/** The path of a route with `id` in it, and names of nothing in the positions after it. */
export const pathOf = ({ path }: Route, id: string): string =>
  path.replace(/\{\w+\}/, id).replaceAll(/\{\w+\}/g, 'other');
