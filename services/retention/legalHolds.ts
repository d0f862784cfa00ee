import type { ListAnswer, ListRequest } from '../../domain/shared/lists.ts';
import type { Commit, Work } from '../../db/core/commit.ts';
import { readDatabaseTime } from '../../db/core/databaseTime.ts';
import type { Knex } from '../../db/core/knex.ts';
import { recordOf } from '../../db/core/recordAudit.ts';
import { scopedRepository } from '../../db/core/scopedRepository.ts';
import { LegalHold } from '../../db/models/LegalHold.ts';
import {
  hasSubject,
  lockToHold,
  tenantsOfSubject,
  whereHoldStatus,
} from '../../db/retention/holds.ts';
import type { Permission } from '../../domain/access/permissions.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import {
  holdStatusAt,
  type HeldSubject,
  type HoldStatus,
  type LegalHoldData,
} from '../../domain/retention/holds.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError, invalidField } from '../../domain/shared/errors.ts';
import type { Ids } from '../../platform/ids.ts';
import type { Access } from '../access/access.ts';
import { checkTenant, requesterOf } from '../access/resourceScope.ts';

export type LegalHolds = ReturnType<typeof createLegalHolds>;

export type HoldRequest = {
  tenantId?: string;
  subject?: HeldSubject;
  reason: string;
  startsAt?: Date;
  endsAt?: Date;
};

export type HoldFilter = {
  tenantId?: string;
  subjectType?: string;
  subjectId?: string;
  status?: readonly HoldStatus[];
};

type Deps = { db: Knex; commit: Commit; access: Access; ids: Ids };

/** Legal holds: created, listed, released; never changed or deleted. */
export function createLegalHolds({ db, commit, access, ids }: Deps) {
  const repository = scopedRepository<LegalHold>(LegalHold, {
    db,
    commit,
    access,
    kind: 'legal hold',
    readPermission: 'hold:read',
  });

  /** The time by which holds begin and end. */
  const now = (): Promise<Date> => readDatabaseTime(db);

  async function checkRequest(
    caller: Caller,
    tenantId: string,
    { subject, startsAt, endsAt }: HoldRequest,
  ): Promise<void> {
    await checkTenant(db, tenantId, requesterOf(access, caller, 'hold:write'), 'body');
    await access.require(caller, 'hold:write', { tenantId });
    if (endsAt && (endsAt <= (await now()) || (startsAt && endsAt <= startsAt)))
      throw invalidField('body', '/endsAt', 'range', 'must be after now and after startsAt');
    if (subject && !(await hasSubject(db, tenantId, subject)))
      throw invalidField(
        'body',
        '/subject/id',
        'not_found',
        `the tenant has no ${subject.type} with this id`,
      );
  }

  return {
    now,

    /**
     * Creates a hold. It is in force when this returns: deletions that have not seen it are committed
     * before it. Errors: `invalid_request`, `permission_denied`, `quota_exceeded`, `unavailable`
     * while deletions last too long.
     */
    async create(caller: Caller, request: HoldRequest): Promise<LegalHoldData> {
      const tenantId = request.tenantId ?? caller.tenantId;
      await checkRequest(caller, tenantId, request);
      const isPlatforms = access.holds(caller.rights, 'hold:write', { tenantId: PLATFORM });
      return commit({ ...caller, tenantId }, async (work) => {
        const trx = await work.trx();
        const tenantsNow = async () =>
          request.subject ? tenantsOfSubject(trx, request.subject) : [];
        const locked = [tenantId, ...(await tenantsNow())];
        await lockToHold(trx, locked);
        if ((await tenantsNow()).some((id) => !locked.includes(id)))
          throw new AppError('conflict', 'The record has just moved; send the request again.');
        const hold = work.insert(LegalHold, {
          id: ids.next('hld'),
          tenantId,
          level: isPlatforms ? 'platform' : 'tenant',
          subjectType: request.subject?.type ?? null,
          subjectId: request.subject?.id ?? null,
          reason: request.reason,
          startsAt: request.startsAt ?? null,
          endsAt: request.endsAt ?? null,
          createdBy: caller.actorId,
          createdAt: work.now,
          releasedBy: null,
          releasedAt: null,
          releaseReason: null,
          updatedAt: work.now,
          version: 1,
        });
        holdRecord.created(work, hold, { tenantId });
        work.result(hold.id);
        return hold;
      });
    },

    /** `actedWith`: see `ScopedRepository`. Error: `not_found`. */
    read: (caller: Caller, id: string, actedWith?: Permission): Promise<LegalHoldData> =>
      repository.find(caller, id, actedWith),

    /** The holds that the caller may read. */
    list: (
      caller: Caller,
      { status }: HoldFilter,
      request: ListRequest,
    ): Promise<ListAnswer<LegalHoldData>> =>
      repository.list(caller, request, {
        refine: (query) => void (status && whereHoldStatus(query, status)),
      }),

    /**
     * Releases a hold; the record remains. A hold of the platform is released with the permission at
     * the platform. Errors: `not_found`, `permission_denied`, `hold_released`, `version_conflict`.
     */
    async release(
      caller: Caller,
      id: string,
      reason: string,
      expectedVersion?: number,
    ): Promise<LegalHoldData> {
      const known = await repository.findToAct(caller, id, 'hold:release');
      if (known.level === 'platform')
        await access.require(caller, 'hold:release', { tenantId: PLATFORM });
      return repository.commitLocked(caller, known, expectedVersion, async (work, before, trx) => {
        if (before.releasedAt) throw new AppError('hold_released', 'The hold is released already.');
        const change = {
          releasedBy: caller.actorId,
          releasedAt: work.now,
          releaseReason: reason,
          updatedAt: work.now,
          version: before.version + 1,
        };
        await LegalHold.query(trx).findById(id).patch(change);
        const after = Object.assign(before.$clone(), change);
        recordRelease(work, before, after);
        return after;
      });
    },
  };
}

type HoldEvent = 'legal-hold.created' | 'legal-hold.released';

const auditView = (hold: LegalHoldData) => ({
  tenantId: hold.tenantId,
  level: hold.level,
  subject: hold.subjectType && { type: hold.subjectType, id: hold.subjectId },
  reason: hold.reason,
  startsAt: hold.startsAt,
  endsAt: hold.endsAt,
  releasedBy: hold.releasedBy,
  releasedAt: hold.releasedAt,
  releaseReason: hold.releaseReason,
});

/** Events say neither why nor what is held: who may read events may not read holds. */
const holdRecord = recordOf<LegalHoldData, HoldEvent>({
  type: 'legal-hold',
  auditView,
  events: { created: 'legal-hold.created' },
  eventData: (hold) => ({
    holdId: hold.id,
    level: hold.level,
    status: holdStatusAt(hold, hold.updatedAt),
  }),
});

function recordRelease(work: Work, before: LegalHoldData, after: LegalHoldData): void {
  holdRecord.acted(work, 'release', after, { before, after });
  holdRecord.emit(work, 'legal-hold.released', after);
}
