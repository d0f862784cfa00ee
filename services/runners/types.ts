import type { Commit, Work } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { notifyTopics } from '../../db/core/unitOfWork.ts';
import { RemoteType } from '../../db/models/RemoteType.ts';
import { countByDigest, countRunners } from '../../db/runners/runners.ts';
import {
  findVersion,
  hasUnfinishedJobs,
  listTypes,
  listVersions,
  TYPES_TOPIC,
} from '../../db/runners/types.ts';
import { PLATFORM, PLATFORM_SCOPE } from '../../domain/access/scope.ts';
import type { RemoteJobType } from '../../domain/jobs/jobType.ts';
import type { RemoteTypeData, TypeVersion } from '../../domain/runners/records.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError, checkVersion, notFound } from '../../domain/shared/errors.ts';
import type { Access } from '../access/access.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import { MAX_REMOTE_TYPES, toJobTypes } from './remoteTypes.ts';
import { remoteTypeRecord } from './typeAudit.ts';

export type RunnerTypes = ReturnType<typeof createRunnerTypes>;

/** A version of a type, and how many living runners have it. */
export type VersionView = TypeVersion & { runners: number };

/** A type of runners, how many runners of its pool are alive, and the versions, newest first. */
export type RunnerTypeView = {
  record: RemoteTypeData;
  type: RemoteJobType;
  runners: number;
  versions: VersionView[];
};

/** Versions that a read of a type includes. */
const SHOWN_VERSIONS = 20;

type Deps = { db: Knex; commit: Commit; access: Access; jobTypes: JobTypes };

/** The job types of runners, for those who accept them. */
export function createRunnerTypes({ db, commit, access, jobTypes }: Deps) {
  async function versionsOf(name: string): Promise<VersionView[]> {
    const byDigest = new Map(
      (await countByDigest(db))
        .filter((each) => each.name === name)
        .map(({ digest, runners }) => [digest, runners]),
    );
    const versions = await listVersions(db, name, SHOWN_VERSIONS);
    return versions.map((each) => ({ ...each, runners: byDigest.get(each.digest) ?? 0 }));
  }

  async function list(name?: string): Promise<RunnerTypeView[]> {
    const records = await listTypes(db, {
      ...(name !== undefined && { name }),
      limit: MAX_REMOTE_TYPES,
    });
    const runners = await countRunners(db, [...new Set(records.map(({ pool }) => pool))]);
    return toJobTypes(records).map(({ record, type }) => ({
      record,
      type,
      runners: runners.get(record.pool) ?? 0,
      versions: [],
    }));
  }

  async function read(name: string, { withVersions = true } = {}): Promise<RunnerTypeView> {
    const [found] = await list(name);
    if (!found) throw notFound('job type', name);
    return { ...found, versions: withVersions ? await versionsOf(name) : [] };
  }

  /** Changes a type while its row is locked, and lets all processes read it again. */
  async function change<T>(
    caller: Caller,
    name: string,
    expectedVersion: number | undefined,
    useCase: (work: Work, before: RemoteType, trx: Knex) => Promise<T>,
  ): Promise<T> {
    await access.require(caller, 'jobtype:write', PLATFORM_SCOPE);
    const result = await commit({ ...caller, tenantId: PLATFORM }, async (work) => {
      const trx = await work.trx();
      const before = await RemoteType.query(trx).findById(name).forUpdate();
      if (!before) throw notFound('job type', name);
      checkVersion(before, expectedVersion);
      await notifyTopics(trx, [TYPES_TOPIC]);
      return useCase(work, before, trx);
    });
    await jobTypes.refresh();
    return result;
  }

  return {
    /** All types that runners have announced, with those that wait for acceptance; without versions. */
    list: () => list(),

    /** Error: `not_found`. */
    read,

    /**
     * Accepts a version of a type, by default the newest, and enables the type. Errors:
     * `permission_denied`, `not_found`, `version_conflict`.
     */
    async accept(
      caller: Caller,
      name: string,
      digest?: string,
      expectedVersion?: number,
    ): Promise<RunnerTypeView> {
      await change(caller, name, expectedVersion, async (work, before, trx) => {
        const version =
          digest === undefined
            ? (await listVersions(trx, name, 1))[0]
            : await findVersion(trx, name, digest);
        if (!version) throw notFound('version of the job type', digest ?? name);
        const after = await RemoteType.query(trx).patchAndFetchById(name, {
          state: 'accepted',
          shape: version.shape,
          digest: version.digest,
          definition: version.definition,
          acceptedBy: caller.actorId,
          acceptedAt: work.now,
          updatedAt: work.now,
          version: before.version + 1,
        });
        remoteTypeRecord.updated(work, before, after);
      });
      return read(name);
    },

    /**
     * Disables a type: no job of it is created or started until it is accepted again. Running attempts go
     * on. Errors: those of `accept`; `conflict` for a type that was never accepted.
     */
    async disable(caller: Caller, name: string, expectedVersion?: number): Promise<RunnerTypeView> {
      await change(caller, name, expectedVersion, async (work, before, trx) => {
        if (before.state === 'waiting')
          throw new AppError('conflict', 'The job type was never accepted. Delete it instead.');
        const after = await RemoteType.query(trx).patchAndFetchById(name, {
          state: 'disabled',
          updatedAt: work.now,
          version: before.version + 1,
        });
        remoteTypeRecord.updated(work, before, after);
      });
      return read(name);
    },

    /**
     * Deletes a type with its versions. Runners that still have it announce it again. Errors: those of
     * `accept`; `in_use` while jobs of it have not finished.
     */
    remove: (caller: Caller, name: string, expectedVersion?: number): Promise<void> =>
      change(caller, name, expectedVersion, async (work, before, trx) => {
        if (await hasUnfinishedJobs(trx, name))
          throw new AppError('in_use', `Jobs of the type ${name} have not finished.`);
        await RemoteType.query(trx).deleteById(name);
        remoteTypeRecord.deleted(work, before);
      }),
  };
}
