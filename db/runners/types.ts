import { SECRET_KEYWORD } from '../../domain/jobs/secretFields.ts';
import type { RemoteTypeData, TypeVersion } from '../../domain/runners/records.ts';
import { raw } from 'objection';
import type { Knex } from '../core/knex.ts';
import { prepared } from '../core/prepared.ts';
import { RemoteType } from '../models/RemoteType.ts';
import { IS_READY } from './runners.ts';

/** Topic of changes of remote job types: processes read them again. */
export const TYPES_TOPIC = 'job-types';

/** Remote types that were accepted once, with the disabled ones. */
export const listKnownTypes = async (db: Knex, limit: number): Promise<RemoteType[]> =>
  RemoteType.query(db).whereNotNull('definition').orderBy('name').limit(limit);

/**
 * All types that runners have announced, or the one with a name. The definition is the newest that was
 * announced for those that wait.
 */
export async function listTypes(
  db: Knex,
  { name, limit }: { name?: string; limit: number },
): Promise<RemoteType[]> {
  const query = RemoteType.query(db)
    .select('job_types.*')
    .select(
      raw(`COALESCE(definition, (SELECT v.definition FROM job_type_versions AS v
           WHERE v.name = job_types.name ORDER BY v.first_seen_at DESC LIMIT 1)) AS definition`),
    )
    .orderBy('name')
    .limit(limit);
  return name === undefined ? query : query.where({ name });
}

/** Adds what runners run under a name; what is known stays as it is. */
export const addVersion = async (
  trx: Knex,
  name: string,
  { digest, shape, definition, firstSeenAt }: TypeVersion,
): Promise<void> =>
  void (await prepared(
    trx,
    `INSERT INTO job_type_versions (name, digest, shape, definition, first_seen_at)
     VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
    [name, digest, shape, JSON.stringify(definition), firstSeenAt],
  ));

/** Removes the oldest versions of a type beyond `keep`, but for the current one. */
export const trimVersions = async (trx: Knex, name: string, keep: number): Promise<void> =>
  void (await trx.raw(
    `DELETE FROM job_type_versions AS v USING job_types AS t
     WHERE v.name = ? AND t.name = v.name AND v.digest IS DISTINCT FROM t.digest AND v.digest NOT IN (
       SELECT digest FROM job_type_versions WHERE name = ? ORDER BY first_seen_at DESC LIMIT ?)`,
    [name, name, keep],
  ));

/** Removes all versions of a type, such as those of the pool that had its name before. */
export const removeVersions = async (trx: Knex, name: string): Promise<void> =>
  void (await trx('job_type_versions').where({ name }).delete());

const unannounced = (db: Knex) =>
  RemoteType.query(db)
    .where({ state: 'waiting' })
    .whereRaw(`updated_at < now() - interval '1 day'`)
    .whereRaw(
      `NOT EXISTS (SELECT FROM runners AS r WHERE r.pool = job_types.pool AND r.types ->> job_types.name IS NOT NULL)`,
    );

/**
 * Types that were never accepted, have not changed for a day, and that no runner announces. A runner that has ended counts
 * until `purgeRunners` removes it, an hour after its last report.
 */
export const findUnannounced = async (db: Knex, limit: number): Promise<RemoteType[]> =>
  unannounced(db).orderByRaw('random()').limit(limit);

/** Locks a type that `findUnannounced` has found; undefined if it is none any more. */
export const lockUnannounced = async (trx: Knex, name: string): Promise<RemoteType | undefined> =>
  unannounced(trx).findById(name).forUpdate();

type VersionRow = TypeVersion;
const VERSION_COLUMNS = 'digest, shape, definition, first_seen_at AS "firstSeenAt"';

/** The different payload schemas with a secret field of what runners have announced under the names. */
export async function listSecretSchemas(
  db: Knex,
  names: readonly string[],
): Promise<{ name: string; schemas: object[] }[]> {
  const { rows }: { rows: { name: string; schemas: object[] }[] } = await prepared(
    db,
    `SELECT name, json_agg(payload::json) AS schemas FROM (
       SELECT DISTINCT name, (definition -> 'payload')::text AS payload FROM job_type_versions
       WHERE name = ANY (?)) AS v
     WHERE payload LIKE '%"${SECRET_KEYWORD}"%' GROUP BY name`,
    [[...names]],
  );
  return rows;
}

/** What runners have announced under a name, newest first. */
export async function listVersions(db: Knex, name: string, limit: number): Promise<TypeVersion[]> {
  const { rows }: { rows: VersionRow[] } = await prepared(
    db,
    `SELECT ${VERSION_COLUMNS} FROM job_type_versions WHERE name = ?
     ORDER BY first_seen_at DESC LIMIT ?`,
    [name, limit],
  );
  return rows;
}

export async function findVersion(
  db: Knex,
  name: string,
  digest: string,
): Promise<TypeVersion | undefined> {
  const { rows }: { rows: VersionRow[] } = await prepared(
    db,
    `SELECT ${VERSION_COLUMNS} FROM job_type_versions WHERE name = ? AND digest = ?`,
    [name, digest],
  );
  return rows[0];
}

/**
 * What a runner has under the name of a type, with the type as it is now. `digest`, `shape` and `definition` are
 * those of the runner's version, and null if it is not known.
 */
export type VersionOfType = Pick<
  RemoteTypeData,
  'name' | 'pool' | 'state' | 'digest' | 'shape' | 'definition'
> & { acceptedShape: string | null };

/** A type with the version that has a digest; undefined if there is no such type. */
export async function findTypeWithVersion(
  db: Knex,
  name: string,
  digest: string,
): Promise<VersionOfType | undefined> {
  const { rows }: { rows: VersionOfType[] } = await prepared(
    db,
    `SELECT t.name, t.pool, t.state, t.shape AS "acceptedShape", v.digest, v.shape, v.definition
     FROM job_types AS t LEFT JOIN job_type_versions AS v ON v.name = t.name AND v.digest = ?
     WHERE t.name = ?`,
    [digest, name],
  );
  return rows[0];
}

/** The states of types, and the shapes of what a runner has announced under their names. */
export async function announcedStates(
  db: Knex,
  types: Readonly<Record<string, string>>,
): Promise<{ name: string; state: string; pool: string; isAccepted: boolean }[]> {
  const {
    rows,
  }: {
    rows: { name: string; state: string; pool: string; isAccepted: boolean }[];
  } = await prepared(
    db,
    `SELECT t.name, t.state, t.pool, coalesce(t.shape = v.shape, false) AS "isAccepted"
     FROM json_each_text(?::json) AS a JOIN job_types AS t ON t.name = a.key
       LEFT JOIN job_type_versions AS v ON v.name = t.name AND v.digest = a.value`,
    [JSON.stringify(types)],
  );
  return rows;
}

/** A version of a type that a runner has, and that is not the current one. */
export type OtherVersion = { name: string; digest: string; isSameShape: boolean };

/**
 * The enabled types of a runner, by digest, whose current version differs from that digest and is announced
 * by no living runner.
 */
export async function findUnusedCurrent(
  db: Knex,
  pool: string,
  types: Readonly<Record<string, string>>,
): Promise<OtherVersion[]> {
  const { rows }: { rows: OtherVersion[] } = await prepared(
    db,
    `SELECT t.name, v.digest, coalesce(t.shape = v.shape, false) AS "isSameShape"
     FROM json_each_text(?::json) AS a JOIN job_types AS t ON t.name = a.key AND t.pool = ?
       JOIN job_type_versions AS v ON v.name = t.name AND v.digest = a.value
     WHERE t.state <> 'disabled' AND t.digest IS DISTINCT FROM v.digest AND NOT EXISTS (
       SELECT FROM runners AS r WHERE r.pool = t.pool AND r.types ->> t.name = t.digest
         AND ${IS_READY})`,
    [JSON.stringify(types), pool],
  );
  return rows;
}

/** True if jobs of a type of runners have not finished. */
export async function hasUnfinishedJobs(trx: Knex, name: string): Promise<boolean> {
  const { rows }: { rows: object[] } = await prepared(
    trx,
    `SELECT 1 FROM jobs WHERE status IN ('queued', 'running') AND pool <> '' AND type = ? LIMIT 1`,
    [name],
  );
  return rows.length > 0;
}
