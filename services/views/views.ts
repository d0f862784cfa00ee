import type { Commit, Work } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { readList } from '../../db/core/lists.ts';
import { View } from '../../db/models/View.ts';
import {
  clearDefaults,
  countViews,
  defaultsAmong,
  findNamesake,
  lockViews,
  readableViews,
  setDefault,
  type ViewIdentity,
} from '../../db/views/views.ts';
import { authorKeyOf, type Caller } from '../../domain/shared/caller.ts';
import { AppError, checkVersion, notFound } from '../../domain/shared/errors.ts';
import { withItems, type ListAnswer, type ListRequest } from '../../domain/shared/lists.ts';
import {
  MAX_SHARED_VIEWS,
  MAX_VIEWS,
  readableAreas,
  sharePermissionOf,
  type ViewData,
} from '../../domain/views/views.ts';
import type { Ids } from '../../platform/ids.ts';
import type { Access } from '../access/access.ts';
import { viewRecord } from './viewAudit.ts';

export type Views = ReturnType<typeof createViews>;

type ViewFields = Pick<ViewData, 'list' | 'name' | 'search' | 'shared'>;
/** The list of a view never changes: its filters are those of the list. */
export type ViewChange = Partial<Omit<ViewFields, 'list'>>;

/** A view as a caller sees it. */
export type OwnView = ViewData & { isOwn: boolean; isDefault: boolean };

type Deps = { db: Knex; commit: Commit; access: Access; ids: Ids };

/** Named views of lists: private ones, and those that are shared in a tenant. */
export function createViews({ db, commit, access, ids }: Deps) {
  const readerOf = (caller: Caller) => ({
    tenantId: caller.tenantId,
    owner: authorKeyOf(caller),
    areas: readableAreas(caller.rights, caller.tenantId),
  });

  async function presented(caller: Caller, views: readonly ViewData[]): Promise<OwnView[]> {
    const reader = readerOf(caller);
    const defaults = await defaultsAmong(
      db,
      reader,
      views.map(({ id }) => id),
    );
    return views.map((view) => ({
      ...view,
      isOwn: view.owner === reader.owner,
      isDefault: defaults.has(view.id),
    }));
  }

  async function find(caller: Caller, id: string): Promise<View> {
    const view = await readableViews(db, readerOf(caller)).findById(id);
    if (!view) throw notFound('view', id);
    return view;
  }

  const read = async (caller: Caller, id: string): Promise<OwnView> => {
    const [view] = await presented(caller, [await find(caller, id)]);
    if (!view) throw notFound('view', id);
    return view;
  };

  /** Error: `permission_denied`. */
  const requireToShare = (caller: Caller, list: string): Promise<unknown> =>
    access.require(caller, sharePermissionOf(list), { tenantId: caller.tenantId });

  /** Errors: `conflict` (name), `limit_reached`. */
  async function checkBeside(
    trx: Knex,
    view: ViewIdentity,
    { exceptId, isAdded }: { exceptId?: string; isAdded: boolean },
  ): Promise<void> {
    if (await findNamesake(trx, view, exceptId))
      throw new AppError(
        'conflict',
        view.shared
          ? `The list has a shared view called ${view.name} already.`
          : `You have a view called ${view.name} of this list already.`,
      );
    const most = view.shared ? MAX_SHARED_VIEWS : MAX_VIEWS;
    if (isAdded && (await countViews(trx, view)) >= most)
      throw new AppError(
        'limit_reached',
        view.shared
          ? `A tenant may share ${most} views.`
          : `You may have ${most} private views here.`,
      );
  }

  /** Commits a change of a view while its row is locked. Errors: `not_found`, `version_conflict`. */
  const commitLocked = <T>(
    caller: Caller,
    id: string,
    expectedVersion: number | undefined,
    change: (work: Work, before: View, trx: Knex) => Promise<T>,
  ): Promise<T> =>
    commit(caller, async (work) => {
      const trx = await work.trx();
      await lockViews(trx, caller.tenantId);
      const before = await readableViews(trx, readerOf(caller)).findById(id).forUpdate();
      if (!before) throw notFound('view', id);
      checkVersion(before, expectedVersion);
      return change(work, before, trx);
    });

  return {
    /** Error: `not_found`, for views of others that are not shared, too. */
    read,

    /** The caller's own views in the tenant of the request, and the shared ones of lists that it may see. */
    async list(caller: Caller, request: ListRequest): Promise<ListAnswer<OwnView>> {
      const reader = readerOf(caller);
      const answer = await readList({ db, visible: () => readableViews(db, reader) }, request);
      return withItems(answer, await presented(caller, answer.items));
    },

    /** Errors: `permission_denied`, `conflict` (name), `limit_reached`. */
    async create(caller: Caller, fields: ViewFields): Promise<OwnView> {
      if (fields.shared) await requireToShare(caller, fields.list);
      const reader = readerOf(caller);
      if (!reader.areas.includes(fields.list.split('/', 2)[1] ?? ''))
        throw new AppError('permission_denied', `You may not see the list ${fields.list}.`);
      const id = ids.next('viw');
      const made = await commit(caller, async (work) => {
        const trx = await work.trx();
        await lockViews(trx, caller.tenantId);
        const record = {
          ...fields,
          tenantId: caller.tenantId,
          owner: reader.owner,
          createdBy: caller.actorId,
          createdAt: work.now,
          updatedAt: work.now,
          version: 1,
        };
        await checkBeside(trx, record, { isAdded: true });
        const view = await View.query(trx).insertAndFetch({ id, ...record });
        viewRecord.created(work, view);
        work.result(id);
        return view;
      });
      const data: ViewData = made;
      return { ...data, isOwn: true, isDefault: false };
    },

    /**
     * Changes the fields that are present. Only the owner makes a shared view private again. Errors: `not_found`,
     * `permission_denied`, `version_conflict`, `conflict` (name), `limit_reached`.
     */
    async update(
      caller: Caller,
      id: string,
      change: ViewChange,
      expectedVersion?: number,
    ): Promise<OwnView> {
      const known = await find(caller, id);
      const isOwn = known.owner === authorKeyOf(caller);
      const onlyHides = change.shared === false && isOwn && caller.token === undefined;
      if (known.shared && change.shared === false && !isOwn)
        throw new AppError('permission_denied', 'Only its owner can make a view private.');
      if ((known.shared || change.shared === true) && !onlyHides)
        await requireToShare(caller, known.list);
      await commitLocked(caller, id, expectedVersion, async (work, before, trx) => {
        const { tenantId, owner, list, name, shared } = before;
        const wanted = { tenantId, owner, list, name, shared, ...change };
        await checkBeside(trx, wanted, { exceptId: id, isAdded: wanted.shared !== shared });
        const after = await View.query(trx).patchAndFetchById(id, {
          ...change,
          updatedAt: work.now,
          version: before.version + 1,
        });
        viewRecord.updated(work, before, after);
      });
      return read(caller, id);
    },

    /** Errors: `not_found`, `permission_denied`, `version_conflict`. */
    async remove(caller: Caller, id: string, expectedVersion?: number): Promise<void> {
      const known = await find(caller, id);
      // What all see is not changed by a token of its owner that may only read.
      const isOfCaller = known.owner === authorKeyOf(caller);
      if (!isOfCaller || (known.shared && caller.token !== undefined))
        await requireToShare(caller, known.list);
      await commitLocked(caller, id, expectedVersion, async (work, before, trx) => {
        await clearDefaults(trx, id);
        await View.query(trx).deleteById(id);
        viewRecord.deleted(work, before);
      });
    },

    /** Makes a view the one that its list opens with for the caller, or no longer. Error: `not_found`. */
    async setDefault(caller: Caller, id: string, isDefault: boolean): Promise<OwnView> {
      await find(caller, id);
      await commitLocked(caller, id, undefined, async (work, view, trx) => {
        const reader = readerOf(caller);
        await (isDefault ? setDefault(trx, reader, view) : clearDefaults(trx, id, reader.owner));
        viewRecord.acted(work, isDefault ? 'set_default' : 'clear_default', view);
      });
      return read(caller, id);
    },
  };
}
