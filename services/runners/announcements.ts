import { cut } from '../../domain/shared/excerpt.ts';
import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { ignoreNoChange, NoChange, type Commit, type Work } from '../../db/core/commit.ts';
import { isForeignKeyViolation, isUniqueViolation } from '../../db/core/constraints.ts';
import type { Knex } from '../../db/core/knex.ts';
import { notifyTopics } from '../../db/core/unitOfWork.ts';
import { Pool } from '../../db/models/Pool.ts';
import { RemoteType } from '../../db/models/RemoteType.ts';
import { noteAlive, noteRunner, removeOwnRunner } from '../../db/runners/runners.ts';
import {
  addVersion,
  announcedStates,
  findUnusedCurrent,
  findVersion,
  removeVersions,
  trimVersions,
  TYPES_TOPIC,
} from '../../db/runners/types.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import { coversJobType } from '../../domain/access/jobTypePatterns.ts';
import { unknownReferencesIn } from '../../domain/jobs/payloadReferences.ts';
import { isReservedTypeName } from '../../domain/jobs/jobTypeNames.ts';
import { MAX_DEFINITION_BYTES } from '../../domain/runners/definition.ts';
import { shapeOf } from '../../domain/runners/shape.ts';
import type { TypeState, TypeVersion } from '../../domain/runners/records.ts';
import type {
  AliveReport,
  AnnouncedState,
  AnnouncedType,
  Announcement,
} from '../../domain/runners/protocol.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError, notFound } from '../../domain/shared/errors.ts';
import { compileForeignSchema, SchemaNotAccepted } from '../../platform/foreignSchema.ts';
import type { Ids } from '../../platform/ids.ts';
import { createPause } from '../../platform/turns.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import type { RunnerIdentity } from './identity.ts';
import { MAX_POOLS } from './pools.ts';
import { MAX_REMOTE_TYPES, MAX_TYPES_OF_POOL } from './remoteTypes.ts';
import { remoteTypeRecord } from './typeAudit.ts';

export type Announcements = ReturnType<typeof createAnnouncements>;

/** Versions of one type that are kept, besides the current one. */
const KEPT_VERSIONS = 50;

type Deps = { db: Knex; commit: Commit; ids: Ids; jobTypes: JobTypes };

/** How many schemas are remembered, by their hash. Runners announce the same types again and again. */
const MAX_CHECKED_SCHEMAS = 5_000;

/** What runners announce. */
export function createAnnouncements({ db, commit, ids, jobTypes }: Deps) {
  /** Why a schema cannot be used; an empty text if it can. */
  const checkedSchemas = new LRUCache<string, string>({ max: MAX_CHECKED_SCHEMAS });

  function schemaProblem(name: string, schema: object): string | undefined {
    const key = hash('sha256', JSON.stringify(schema), 'base64');
    let problem = checkedSchemas.get(key);
    if (problem === undefined) {
      problem = problemOf(schema);
      checkedSchemas.set(key, problem);
    }
    return problem === ''
      ? undefined
      : `The schema of the ${name} cannot be used: ${cut(problem, 300)}`;
  }

  /** True if the process knows a version as the accepted one of its type. */
  function isAccepted(name: string, digest: string): boolean {
    const type = jobTypes.find(name);
    return type?.lane === 'remote' && type.digest === digest;
  }

  /** Why a version that is not known can never be accepted; undefined if it can. */
  const versionRefusal = ({ definition: { payload, result } }: AnnouncedType): string | undefined =>
    schemaProblem('payload', payload) ?? (result && schemaProblem('result', result));

  /** Why a type can never be accepted, whatever its schemas are; undefined if it can. */
  function refusal(pool: string, { definition }: AnnouncedType): string | undefined {
    const { name, payload } = definition;
    if (isReservedTypeName(name) || jobTypes.isOwn(name))
      return 'Types of Holdfast itself, and modules, have this name or its first word.';
    if (definition.pool !== pool) return `The definition is for the pool ${definition.pool}.`;
    if (Buffer.byteLength(JSON.stringify(definition)) > MAX_DEFINITION_BYTES)
      return `The definition has more than ${MAX_DEFINITION_BYTES} bytes.`;
    if (payload.type !== 'object') return 'The schema of the payload must have the type object.';
    const [unknown] = unknownReferencesIn(payload);
    return unknown && `x-holdfast-ref: there is no inventory resource ${unknown}.`;
  }

  /** Adds a new version of a type in a commit. Returns why it is refused, if it is. */
  async function addToType(
    work: Work,
    trx: Knex,
    { pool, pools }: Announcer,
    { digest, definition }: AnnouncedType,
    caller: Caller,
  ): Promise<string | undefined> {
    const { name } = definition;
    const shape = shapeOf(definition);
    const isTrusted = trusts(pool, name);
    const accepted = acceptance({ digest, shape, definition }, caller, work.now);
    const before = await RemoteType.query(trx).findById(name).forUpdate();
    const problem = ownershipProblem({ pool, pools }, name, before);
    if (problem !== undefined) return problem;
    const isOwn = before?.pool === pool.name;
    if (!isOwn) {
      const full = await limitProblem(trx, pool.name, before);
      if (full !== undefined) return full;
    }
    if (!before) {
      const type = await RemoteType.query(trx).insertAndFetch({
        name,
        pool: pool.name,
        state: 'waiting',
        ...(isTrusted && accepted),
        createdAt: work.now,
        updatedAt: work.now,
        version: 1,
      });
      remoteTypeRecord.created(work, type, { extra: { digest } });
    } else {
      const isSameShape = before.state === 'accepted' && before.shape === shape;
      const replaces =
        (isSameShape || (isTrusted && before.state !== 'disabled')) && before.digest !== digest;
      if (!isOwn) await removeVersions(trx, name);
      const after = await RemoteType.query(trx).patchAndFetchById(name, {
        pool: pool.name,
        ...(replaces && { ...accepted, ...(isSameShape && acceptanceOf(before)) }),
        updatedAt: work.now,
        version: before.version + 1,
      });
      remoteTypeRecord.updated(work, before, after, { extra: { announcedDigest: digest } });
    }
    await addVersion(trx, name, { digest, shape, definition, firstSeenAt: work.now });
    await trimVersions(trx, name, KEPT_VERSIONS);
    await notifyTopics(trx, [TYPES_TOPIC]);
    return undefined;
  }

  /** True if runners have announced the version before. */
  async function isKnown(pool: string, { digest, definition }: AnnouncedType): Promise<boolean> {
    const { name } = definition;
    const type = await RemoteType.query(db).findById(name);
    return type?.pool === pool && (await findVersion(db, name, digest)) !== undefined;
  }

  /**
   * Makes versions of a runner the current ones where no living runner has the current one any more, such as
   * after a declaration went back to what it was: those of the accepted shape, and all that the pool accepts
   * by name. What another runner has stays, so that two runners do not replace each other's versions.
   */
  async function replaceUnused(
    caller: Caller,
    poolName: string,
    types: Readonly<Record<string, string>>,
  ): Promise<void> {
    const found = await findUnusedCurrent(db, poolName, types);
    if (found.length === 0) return;
    const pools = await Pool.query(db).limit(MAX_POOLS);
    const pool = pools.find(({ name }) => name === poolName);
    if (!pool) return;
    for (const { name, digest, isSameShape } of found)
      if (isSameShape || trusts(pool, name))
        await commit({ ...caller, tenantId: PLATFORM }, async (work) =>
          replaceVersion(work, await work.trx(), { pool, pools }, { name, digest }, caller),
        ).catch(ignoreNoChange(undefined));
  }

  /** Makes a known version the current one. Error: `NoChange` if another process has changed the type since. */
  async function replaceVersion(
    work: Work,
    trx: Knex,
    announcer: Announcer,
    { name, digest }: { name: string; digest: string },
    caller: Caller,
  ): Promise<void> {
    const { pool } = announcer;
    const before = await RemoteType.query(trx).findById(name).forUpdate();
    const version = await findVersion(trx, name, digest);
    const [candidate] = await findUnusedCurrent(trx, pool.name, { [name]: digest });
    if (!before || !version || !candidate) throw new NoChange();
    if (ownershipProblem(announcer, name, before) !== undefined) throw new NoChange();
    const { isSameShape } = candidate;
    if (!isSameShape && !trusts(pool, name)) throw new NoChange();
    const after = await RemoteType.query(trx).patchAndFetchById(name, {
      ...acceptance(version, caller, work.now),
      ...(isSameShape && acceptanceOf(before)),
      updatedAt: work.now,
      version: before.version + 1,
    });
    remoteTypeRecord.updated(work, before, after, { extra: { announcedDigest: digest } });
    await notifyTopics(trx, [TYPES_TOPIC]);
  }

  async function announceType(
    caller: Caller,
    announcer: Announcer,
    type: AnnouncedType,
  ): Promise<string | undefined> {
    const { pool } = announcer;
    const { name } = type.definition;
    const reason =
      refusal(pool.name, type) ??
      ownershipProblem(announcer, name, await RemoteType.query(db).findById(name));
    if (reason !== undefined) return reason;
    if (await isKnown(pool.name, type)) return undefined;
    const versionReason = versionRefusal(type);
    if (versionReason !== undefined) return versionReason;
    let refused: string | undefined;
    const add = () =>
      commit({ ...caller, tenantId: PLATFORM }, async (work) => {
        refused = await addToType(work, await work.trx(), announcer, type, caller);
        if (refused !== undefined) throw new AppError('conflict', refused);
      });
    await add()
      // Another runner has just announced the type for the first time: now there is a row to lock.
      .catch((error: unknown) => {
        if (!isUniqueViolation(error)) throw error;
        return add();
      })
      .catch((error: unknown) => {
        if (refused === undefined) throw error;
      });
    return refused;
  }

  /** The states of types that a runner has announced. */
  async function statesOf(types: Readonly<Record<string, string>>): Promise<AnnouncedState[]> {
    const known = new Map((await announcedStates(db, types)).map((each) => [each.name, each]));
    return Object.entries(types).map(([name, digest]) => {
      const type = known.get(name);
      if (!type) return { name, digest, state: 'refused', reason: 'The type was deleted.' };
      const state = type.state === 'accepted' && !type.isAccepted ? 'waiting' : type.state;
      return { name, digest, state: state as TypeState };
    });
  }

  async function announceTo(
    pool: Pool,
    caller: Caller,
    tokenId: string,
    { runnerId, types, reachesTemporal = true, ...about }: Announcement,
  ): Promise<{ runner: string; types: AnnouncedState[] }> {
    const refused: AnnouncedState[] = [];
    const offered: Record<string, string> = {};
    const announcer = { pool, pools: await Pool.query(db).limit(MAX_POOLS) };
    const pause = createPause();
    for (const type of types) {
      await pause();
      const { name } = type.definition;
      const reason = Object.hasOwn(offered, name)
        ? 'The runner has announced this name twice.'
        : await announceType(caller, announcer, type);
      if (reason === undefined) offered[name] = type.digest;
      else refused.push({ name, digest: type.digest, state: 'refused', reason });
    }
    const id = await noteRunner(db, {
      ...about,
      id: ids.next('rnr'),
      processId: runnerId,
      tokenId,
      types: offered,
      address: caller.address,
      reachesTemporal,
    });
    if (id === undefined)
      throw new AppError('conflict', 'Another token has announced a runner with this id.');
    await replaceUnused(caller, pool.name, offered);
    // What follows finds the versions that this process has just stored: their secret fields, too.
    if (Object.entries(offered).some(([name, digest]) => !isAccepted(name, digest)))
      await jobTypes.refresh();
    return { runner: id, types: [...(await statesOf(offered)), ...refused] };
  }

  return {
    /**
     * Notes what a runner offers to a pool, instead of what it has announced before. Errors:
     * `permission_denied` for a pool that its token does not name, `not_found`, `conflict`.
     */
    async announce(
      caller: Caller,
      { tokenId, pools }: RunnerIdentity,
      announcement: Announcement,
    ): Promise<{ runner: string; types: AnnouncedState[] }> {
      const { pool: name } = announcement;
      if (!pools.includes(name))
        throw new AppError('permission_denied', `The token is not for the pool ${name}.`);
      const pool = await Pool.query(db).findById(name);
      if (!pool) throw notFound('pool', name);
      return announceTo(pool, caller, tokenId, announcement).catch((error: unknown) => {
        // The pool has been deleted since.
        throw isForeignKeyViolation(error) ? notFound('pool', name) : error;
      });
    },

    /**
     * Notes that a runner is alive. What it has announced can be accepted since: the pool accepts more types,
     * or no other runner has the current version. Error: `unknown_runner`; it must announce itself then.
     */
    async alive(
      caller: Caller,
      { tokenId, pools }: RunnerIdentity,
      { runnerId, pool, reachesTemporal = true }: AliveReport,
    ): Promise<AnnouncedState[]> {
      const known =
        pools.includes(pool) &&
        (await noteAlive(db, { processId: runnerId, pool, tokenId, reachesTemporal }));
      if (!known) throw new AppError('unknown_runner', 'The runner must announce itself.');
      await replaceUnused(caller, pool, known.types);
      return statesOf(known.types);
    },

    /** Forgets a runner that stops. */
    leave: (
      { tokenId }: RunnerIdentity,
      { runnerId, pool }: { runnerId: string; pool: string },
    ): Promise<void> => removeOwnRunner(db, { processId: runnerId, pool, tokenId }),
  };
}

/** True if a pool accepts a type by its name. */
const trusts = ({ acceptTypes }: Pool, name: string): boolean =>
  acceptTypes.some((pattern) => coversJobType(pattern, name));

/** The pool of a runner, and all pools. */
type Announcer = { pool: Pool; pools: readonly Pool[] };

/** True if a pool has a pattern for the name of a type, besides that for all names. */
const names = ({ acceptTypes }: Pool, type: string): boolean =>
  acceptTypes.some((pattern) => pattern !== '*' && coversJobType(pattern, type));

/**
 * Why a pool may not announce the name of a type; undefined if it may. A name belongs to the pools that name it, and
 * otherwise to the pool that has announced it first. A type that was accepted once stays in its pool.
 */
function ownershipProblem(
  { pool, pools }: Announcer,
  name: string,
  type: Pick<RemoteType, 'pool' | 'state'> | undefined,
): string | undefined {
  if (type && type.state !== 'waiting')
    return type.pool === pool.name ? undefined : 'The type belongs to another pool.';
  if (names(pool, name)) {
    const other = type && pools.find((each) => each.name === type.pool);
    return other && other.name !== pool.name && names(other, name)
      ? 'The type belongs to another pool.'
      : undefined;
  }
  if (pools.some((each) => names(each, name)))
    return 'The type belongs to another pool, whose acceptTypes name it.';
  return type && type.pool !== pool.name ? 'The type belongs to another pool.' : undefined;
}

/** Why a pool can have no other type; undefined if it can. `before` is that which it takes over. */
async function limitProblem(
  trx: Knex,
  pool: string,
  before: RemoteType | undefined,
): Promise<string | undefined> {
  if ((await RemoteType.query(trx).where({ pool }).resultSize()) >= MAX_TYPES_OF_POOL)
    return `The pool has ${MAX_TYPES_OF_POOL} types; delete those that are not needed.`;
  return !before && (await RemoteType.query(trx).resultSize()) >= MAX_REMOTE_TYPES
    ? `There are ${MAX_REMOTE_TYPES} types; delete those that are not needed.`
    : undefined;
}

/** The fields of a type that is accepted with a version. */
const acceptance = (
  { digest, shape, definition }: Pick<TypeVersion, 'digest' | 'shape' | 'definition'>,
  { actorId }: Caller,
  now: Date,
) => ({
  state: 'accepted' as const,
  ...{ shape, digest, definition },
  acceptedBy: actorId,
  acceptedAt: now,
});

/** Who has accepted a type, and when: another version of the same shape changes neither. */
const acceptanceOf = ({ acceptedBy, acceptedAt }: RemoteType) => ({ acceptedBy, acceptedAt });

/** Why a schema cannot be used; an empty text if it can. */
function problemOf(schema: object): string {
  try {
    compileForeignSchema(schema);
    return '';
  } catch (error) {
    if (!(error instanceof SchemaNotAccepted)) throw error;
    return error.message;
  }
}
