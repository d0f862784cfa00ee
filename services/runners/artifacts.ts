import {
  createCipheriv,
  createDecipheriv,
  createHash,
  randomBytes,
  type DecipherGCM,
} from 'node:crypto';
import { Readable } from 'node:stream';
import type { Knex } from '../../db/core/knex.ts';
import { lockIfCurrentAttempt } from '../../db/jobs/jobs.ts';
import {
  listArtifacts,
  noteUpload,
  postponeRemoval,
  putArtifact,
  type StoredArtifact,
} from '../../db/runners/artifacts.ts';
import {
  ARTIFACT_PREFIX,
  checkArtifactLimits,
  MAX_ARTIFACT_SECONDS,
  type ArtifactData,
} from '../../domain/runners/artifacts.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError, notFound } from '../../domain/shared/errors.ts';
import type { Log } from '../../platform/log.ts';
import type { Slots } from '../../platform/slots.ts';
import { StoreError, type StoreKind } from '../../platform/stores/store.ts';
import type { Vault } from '../../platform/vault.ts';
import type { Archives } from '../backups/archives.ts';
import type { Jobs } from '../jobs/jobs.ts';
import { createArtifactRemoval } from './artifactRemoval.ts';
import { requireCurrent } from './currentAttempt.ts';
import type { RunnerIdentity } from './identity.ts';

export type Artifacts = ReturnType<typeof createArtifacts>;

type Deps = {
  db: Knex;
  log: Log;
  vault: Vault;
  archives: Pick<Archives, 'targetStore' | 'storeOf'>;
  jobs: Pick<Jobs, 'logs'>;
  slots: { artifactUploads: Slots };
  removeMs?: number;
};

/** The object of an upload that is not an artifact then is removed: its request has ended, and its store was asked. */
const UPLOAD_SECONDS = MAX_ARTIFACT_SECONDS + 600;

const IV_BYTES = 12;
const TAG_BYTES = 16;

const objectNameOf = (jobId: string) =>
  `${ARTIFACT_PREFIX}${jobId}-${randomBytes(8).toString('hex')}`;

/** Binds the key of an object to it: a copied one does not open another object. */
const keyContext = (object: string) => `artifact:${object}`;

const RETRY_AFTER_SECONDS = 10;

const openingOf = (key: Buffer, iv: Buffer, object: string): DecipherGCM =>
  createDecipheriv('aes-256-gcm', key, iv, { authTagLength: TAG_BYTES }).setAAD(
    Buffer.from(keyContext(object)),
  );

/** A file that an attempt leaves. */
type NewFile = { name: string; source: Readable };

/**
 * Locks the attempt that leaves a file until the transaction ends, and returns its number. It is checked
 * before the upload, and again when the file becomes an artifact. Error: `attempt_lost`.
 */
type RequireAttempt = (trx: Knex) => Promise<number>;

/** Files that jobs leave, in the store of backups, each encrypted with a key of its own. */
export function createArtifacts({ db, log, vault, archives, jobs, slots, removeMs }: Deps) {
  const storeOf = (store: string) => archives.storeOf({ store: store as StoreKind });

  /** The error for a failure of the store. What the store said is for operators: it goes to the log. */
  function unavailable(
    error: unknown,
    artifact: Pick<StoredArtifact, 'store' | 'object'>,
  ): unknown {
    if (!(error instanceof StoreError)) return error;
    const { store, object } = artifact;
    log.error({ err: error, store, object }, 'the store of artifacts cannot be used');
    return new AppError('unavailable', 'The store of artifacts cannot be used at present.', {
      retryAfterSeconds: RETRY_AFTER_SECONDS,
    });
  }

  /** Encrypts and uploads a file. Error: `limit_reached`; those of the store and of the source. */
  async function upload(
    { store, object }: Pick<StoredArtifact, 'store' | 'object'>,
    key: Buffer,
    source: Readable,
    others: readonly ArtifactData[],
  ): Promise<{ bytes: number; sha256: string }> {
    const archiveStore = storeOf(store);
    const target = await archiveStore.startUpload(object);
    try {
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(keyContext(object)));
      const hash = createHash('sha256');
      let bytes = 0;
      await target.write(iv);
      for await (const chunk of source as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        checkArtifactLimits(others, bytes);
        hash.update(chunk);
        await target.write(cipher.update(chunk));
      }
      await target.write(Buffer.concat([cipher.final(), cipher.getAuthTag()]));
      await archiveStore.finalize(object, await target.finish());
      return { bytes, sha256: hash.digest('hex') };
    } catch (error) {
      await target.abort().catch(() => undefined);
      throw error;
    }
  }

  /** The content of an artifact. A modified one ends with an error, so that its download is not complete. */
  async function* content(artifact: StoredArtifact): AsyncGenerator<Buffer> {
    try {
      yield* decrypted(artifact);
    } catch (error) {
      throw unavailable(error, artifact);
    }
  }

  async function* decrypted({ store, object, sealedKey }: StoredArtifact): AsyncGenerator<Buffer> {
    const key = Buffer.from(vault.open(sealedKey, keyContext(object)), 'base64');
    let decipher: DecipherGCM | undefined;
    let held = Buffer.alloc(0);
    for await (const chunk of storeOf(store).read(object)) {
      held = Buffer.concat([held, chunk]);
      if (!decipher && held.length >= IV_BYTES) {
        decipher = openingOf(key, held.subarray(0, IV_BYTES), object);
        held = held.subarray(IV_BYTES);
      }
      // The last bytes are the tag.
      if (!decipher || held.length <= TAG_BYTES) continue;
      yield decipher.update(held.subarray(0, -TAG_BYTES));
      held = held.subarray(-TAG_BYTES);
    }
    if (!decipher) throw new Error('An artifact has no content');
    decipher.setAuthTag(held);
    decipher.final();
  }

  /** The size of the object of an artifact; null if it is missing. Error: `unavailable`. */
  async function sizeOf(artifact: StoredArtifact): Promise<number | null> {
    try {
      return await storeOf(artifact.store).sizeOf(artifact.object);
    } catch (error) {
      throw unavailable(error, artifact);
    }
  }

  /** The artifacts of a job that the caller may read. Error: `not_found`. */
  async function visible(caller: Caller, jobId: string): Promise<StoredArtifact[]> {
    await jobs.logs(caller, jobId, { after: 0, limit: 0 });
    return listArtifacts(db, jobId);
  }

  async function store(
    jobId: string,
    { name, source }: NewFile,
    requireAttempt: RequireAttempt,
  ): Promise<ArtifactData> {
    const othersOf = async (on: Knex) =>
      (await listArtifacts(on, jobId)).filter((each) => each.name !== name);
    await db.transaction(requireAttempt);
    const others = await othersOf(db);
    checkArtifactLimits(others, 0);
    const target = { store: archives.targetStore(), object: objectNameOf(jobId) };
    const key = randomBytes(32);
    const sealedKey = vault.seal(key.toString('base64'), keyContext(target.object));
    await noteUpload(db, target, UPLOAD_SECONDS);
    const stored = await upload(target, key, source, others).catch(async (error: unknown) => {
      // It is removed later otherwise.
      await postponeRemoval(db, target.object, 0).catch(() => undefined);
      throw unavailable(error, target);
    });
    return db.transaction(async (trx) => {
      const attempt = await requireAttempt(trx);
      checkArtifactLimits(await othersOf(trx), stored.bytes);
      const artifact = { ...stored, ...target, name, attempt, sealedKey, createdAt: new Date() };
      await putArtifact(trx, jobId, artifact);
      return artifact;
    });
  }

  return {
    list: (caller: Caller, jobId: string): Promise<ArtifactData[]> => visible(caller, jobId),

    /** The content of an artifact, with its size. Errors: `not_found`, `unavailable`. */
    async read(
      caller: Caller,
      jobId: string,
      name: string,
    ): Promise<{ artifact: ArtifactData; source: Readable }> {
      const artifact = (await visible(caller, jobId)).find((each) => each.name === name);
      if (!artifact) throw notFound('artifact', name);
      if ((await sizeOf(artifact)) === null) throw notFound('artifact', name);
      return { artifact, source: Readable.from(content(artifact), { objectMode: false }) };
    },

    /**
     * Stores a file that an attempt of a runner has left, instead of one with its name. It is not read before
     * the tenant of the job has a slot. Errors: `attempt_lost`, `limit_reached`, `not_supported`,
     * `master_key_missing`, `unavailable`, `too_many_requests`; the reason of `signal`.
     */
    async put(
      runner: RunnerIdentity,
      jobId: string,
      attemptToken: string,
      file: NewFile,
      signal: AbortSignal,
    ): Promise<ArtifactData> {
      const requireAttempt = (trx: Knex) => requireCurrent(trx, runner, jobId, attemptToken);
      const { tenantId } = await db.transaction(requireAttempt);
      const holder = { kind: 'system', tenantId, actorId: jobId } as const;
      return slots.artifactUploads.receive(holder, signal, file.source, () =>
        store(jobId, file, async (trx) => (await requireAttempt(trx)).attempt),
      );
    },

    /** As `put`, for an attempt that a worker makes itself. */
    putOwn: (
      { jobId, runId, attempt }: { jobId: string; runId: string; attempt: number },
      file: NewFile,
    ): Promise<ArtifactData> =>
      store(jobId, file, async (trx) => {
        if (await lockIfCurrentAttempt(trx, { jobId, runId, attempt })) return attempt;
        throw new AppError('attempt_lost', 'Another attempt runs the job, or the job has ended.');
      }),

    /** See `createArtifactRemoval`. */
    removeUnused: createArtifactRemoval({ db, log, storeOf, ...(removeMs && { removeMs }) }),
  };
}
