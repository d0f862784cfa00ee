import type { QueryBuilder } from 'objection';
import { lockKeySql } from '../core/advisoryLocks.ts';
import type { Knex } from '../core/knex.ts';
import { View } from '../models/View.ts';

/** Who asks for views: in a tenant, with the areas whose lists it may see there. */
export type ViewReader = { tenantId: string; owner: string; areas: readonly string[] };

/** The views of a reader, and those that are shared with it. */
export const readableViews = (
  db: Knex,
  { tenantId, owner, areas }: ViewReader,
): QueryBuilder<View> =>
  View.query(db)
    .where('tenant_id', tenantId)
    .whereRaw("split_part(list, '/', 2) = ANY (?::text[])", [[...areas]])
    .whereRaw('(shared OR owner = ?)', [owner]);

/** Makes transactions that count the views of a tenant, or check their names, wait for each other. */
export const lockViews = async (trx: Knex, tenantId: string): Promise<void> =>
  void (await trx.raw(`SELECT pg_advisory_xact_lock(${lockKeySql('views', '?::text')})`, [
    tenantId,
  ]));

/** The number of views that a user has, or that a tenant shares. */
export async function countViews(
  trx: Knex,
  { tenantId, owner, shared }: Pick<View, 'tenantId' | 'owner' | 'shared'>,
): Promise<number> {
  const query = View.query(trx).where({ tenant_id: tenantId });
  return (shared ? query.where({ shared }) : query.where({ owner, shared })).resultSize();
}

/** What distinguishes a view from those beside which it is shown. */
export type ViewIdentity = Pick<View, 'tenantId' | 'owner' | 'list' | 'name' | 'shared'>;

/** Another view of the list with this name, among those beside which it would be shown. */
export const findNamesake = (
  trx: Knex,
  { tenantId, list, name, shared, owner }: ViewIdentity,
  exceptId: string | undefined,
): Promise<View | undefined> => {
  const query = View.query(trx).where({ tenant_id: tenantId, list, name, shared });
  if (!shared) void query.where({ owner });
  if (exceptId !== undefined) void query.whereNot({ id: exceptId });
  return query.first().execute();
};

/** Which of these views are the defaults of a reader. */
export async function defaultsAmong(
  db: Knex,
  { tenantId, owner }: Pick<ViewReader, 'tenantId' | 'owner'>,
  ids: readonly string[],
): Promise<Set<string>> {
  const found: string[] = await db('view_defaults')
    .where({ tenant_id: tenantId, owner })
    .whereIn('view_id', [...ids])
    .pluck('view_id');
  return new Set(found);
}

/** Makes a view the one that a list opens with, for one reader. */
export const setDefault = async (
  trx: Knex,
  { tenantId, owner }: Pick<ViewReader, 'tenantId' | 'owner'>,
  { id, list }: Pick<View, 'id' | 'list'>,
): Promise<void> =>
  void (await trx('view_defaults')
    .insert({ tenant_id: tenantId, owner, list, view_id: id })
    .onConflict(['tenant_id', 'owner', 'list'])
    .merge());

/** Removes what chooses a view as a default: of one reader, or of all. */
export const clearDefaults = async (trx: Knex, viewId: string, owner?: string): Promise<void> =>
  void (await trx('view_defaults')
    .where({ view_id: viewId, ...(owner !== undefined && { owner }) })
    .delete());
