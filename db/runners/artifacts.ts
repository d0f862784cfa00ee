import type { ArtifactData } from '../../domain/runners/artifacts.ts';
import type { Knex } from '../core/knex.ts';
import { prepared } from '../core/prepared.ts';

/** Where the content of an artifact is, and the sealed key to it. */
export type StoredArtifact = ArtifactData & { store: string; object: string; sealedKey: string };

const COLUMNS = `name, attempt, bytes, sha256, store, object, sealed_key AS "sealedKey", created_at AS "createdAt"`;

/** The artifacts of a job, by name. */
export async function listArtifacts(db: Knex, jobId: string): Promise<StoredArtifact[]> {
  const { rows }: { rows: StoredArtifact[] } = await prepared(
    db,
    `SELECT ${COLUMNS} FROM job_artifacts WHERE job_id = ? ORDER BY name`,
    [jobId],
  );
  return rows;
}

/** Adds an artifact, or replaces the one with its name. Its upload is not to be removed any more. */
export const putArtifact = async (
  trx: Knex,
  jobId: string,
  artifact: StoredArtifact,
): Promise<void> =>
  void (await prepared(
    trx,
    `WITH kept AS (DELETE FROM artifact_removals WHERE object = ?)
     INSERT INTO job_artifacts (job_id, name, attempt, bytes, sha256, store, object, sealed_key, created_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (job_id, name) DO UPDATE SET attempt = excluded.attempt, bytes = excluded.bytes,
       sha256 = excluded.sha256, store = excluded.store, object = excluded.object,
       sealed_key = excluded.sealed_key, created_at = excluded.created_at`,
    [
      artifact.object,
      ...[jobId, artifact.name, artifact.attempt, artifact.bytes, artifact.sha256],
      ...[artifact.store, artifact.object, artifact.sealedKey, artifact.createdAt],
    ],
  ));

/** Notes an object that is removed in `seconds`, unless it becomes an artifact before. */
export const noteUpload = async (
  db: Knex,
  { store, object }: Pick<StoredArtifact, 'store' | 'object'>,
  seconds: number,
): Promise<void> =>
  void (await prepared(
    db,
    `INSERT INTO artifact_removals (store, object, due_at) VALUES (?, ?, now() + ? * interval '1 second')`,
    [store, object, seconds],
  ));

/** Objects that are to be removed from their stores, except `otherStores`, oldest first. */
export async function findRemovals(
  db: Knex,
  limit: number,
  otherStores: readonly string[],
): Promise<Pick<StoredArtifact, 'store' | 'object'>[]> {
  const { rows }: { rows: Pick<StoredArtifact, 'store' | 'object'>[] } = await prepared(
    db,
    `SELECT store, object FROM artifact_removals
     WHERE due_at < now() AND store <> ALL (?::text[]) ORDER BY due_at LIMIT ?`,
    [[...otherStores], limit],
  );
  return rows;
}

/** Objects have been removed from their stores. */
export const endRemovals = async (db: Knex, objects: readonly string[]): Promise<void> =>
  void (await prepared(db, 'DELETE FROM artifact_removals WHERE object = ANY (?::text[])', [
    [...objects],
  ]));

/** An object could not be removed: it is tried again in `seconds`. */
export const postponeRemoval = async (db: Knex, object: string, seconds: number): Promise<void> =>
  void (await prepared(
    db,
    `UPDATE artifact_removals SET due_at = now() + ? * interval '1 second' WHERE object = ?`,
    [seconds, object],
  ));
