import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  paginateListObjectsV2,
  S3Client,
  S3ServiceException,
  UploadPartCommand,
  type ListMultipartUploadsCommandOutput,
} from '@aws-sdk/client-s3';
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Readable } from 'node:stream';
import {
  createAddressGuard,
  hostOf,
  portOf,
  OutboundError,
  PRIVATE_NETWORKS,
} from '../addressGuard.ts';
import type { StoreAccess } from './createStore.ts';
import { checkedName, isArchiveName, StoreError, type ArchiveUpload } from './store.ts';

/** `endpoint` is undefined for AWS. `prefix` is put in front of every name. */
export type S3Settings = {
  bucket: string;
  prefix: string;
  region: string;
  endpoint: string | undefined;
  accessKeyId: string;
  secretAccessKey: string;
};

const CONNECT_MS = 5_000;
/** Time limit of one part, and of a read without progress. */
const REQUEST_MS = 120_000;
const MAX_ATTEMPTS = 3;

const MIB = 1 << 20;
const MAX_PARTS = 10_000;

/** Parts grow with the archive, since S3 allows 10,000 of them. Two are in memory concurrently. */
const partBytes = (number: number): number =>
  8 * MIB * 2 ** Math.min(3, Math.floor(number / 1_000));

/** An option of requests. */
type Aborting = { abortSignal?: AbortSignal };

const nameOf = (error: unknown): string => (error instanceof Error ? error.name : '');
const isMissing = (error: unknown): boolean =>
  ['NoSuchKey', 'NotFound'].includes(nameOf(error)) ||
  (error instanceof S3ServiceException &&
    error.$metadata.httpStatusCode === 404 &&
    nameOf(error) !== 'NoSuchBucket');

/** Converts errors of the SDK, whose messages may have request headers, to `StoreError`. */
function toStoreError(error: unknown): unknown {
  if (error instanceof StoreError) return error;
  if (isMissing(error))
    return new StoreError('archive_missing', 'The archive is not in the bucket.', false);
  if (error instanceof S3ServiceException) {
    const status = error.$metadata.httpStatusCode ?? 0;
    const refused = status >= 400 && status < 500 && ![408, 409, 429].includes(status);
    return new StoreError(
      refused ? 'store_refused' : 'store_unavailable',
      `The object store returned ${error.name} (${status}).`,
      !refused,
    );
  }
  if (error instanceof OutboundError)
    return new StoreError('store_refused', error.message, error.transient);
  if (error instanceof TypeError || error instanceof RangeError) return error;
  const { code } = (error ?? {}) as { code?: unknown };
  return new StoreError(
    'store_unavailable',
    `The object store cannot be reached (${typeof code === 'string' ? code : nameOf(error)}).`,
    true,
  );
}

/**
 * Creates a client that connects to public and private addresses and to `allow` (CIDRs), but not to
 * link-local addresses. Optional checksums are off, since not every server supports them: archives
 * are verified after the upload.
 */
function createClient(
  { region, endpoint, accessKeyId, secretAccessKey }: S3Settings,
  allow: readonly string[],
): S3Client {
  const guard = createAddressGuard({ allow: [...allow, ...PRIVATE_NETWORKS] });
  const url = new URL(endpoint ?? 'https://s3.amazonaws.com');
  const [host, port] = [hostOf(url), portOf(url)];
  guard.requirePermitted(host, port);
  const agent = { keepAlive: true, maxSockets: 16, lookup: guard.lookupFor(port) };
  return new S3Client({
    region,
    ...(endpoint !== undefined && { endpoint, forcePathStyle: true }),
    credentials: { accessKeyId, secretAccessKey },
    maxAttempts: MAX_ATTEMPTS,
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: {
      connectionTimeout: CONNECT_MS,
      requestTimeout: REQUEST_MS,
      socketTimeout: REQUEST_MS,
      httpAgent: new HttpAgent(agent),
      httpsAgent: new HttpsAgent(agent),
    },
  });
}

/** Sends a part while the next one is collected. */
function createUpload(
  client: S3Client,
  target: { Bucket: string; Key: string },
  uploadId: string,
): ArchiveUpload {
  const etags: string[] = [];
  let [chunks, bufferedBytes, sizeBytes]: [Buffer[], number, number] = [[], 0, 0];
  let sending: Promise<void> = Promise.resolve();

  async function sendPart(): Promise<void> {
    await sending;
    const number = etags.length + 1;
    if (number > MAX_PARTS)
      throw new StoreError(
        'store_full',
        'The archive exceeds the maximum size of an object.',
        false,
      );
    const body = Buffer.concat(chunks);
    [chunks, bufferedBytes] = [[], 0];
    sending = client
      .send(
        new UploadPartCommand({ ...target, UploadId: uploadId, PartNumber: number, Body: body }),
      )
      .then(({ ETag }) => void etags.push(ETag ?? ''));
    // The failure is thrown when `sending` is awaited.
    sending.catch(() => undefined);
  }

  return {
    async write(bytes) {
      chunks.push(bytes);
      bufferedBytes += bytes.length;
      sizeBytes += bytes.length;
      if (bufferedBytes >= partBytes(etags.length)) await sendPart();
    },
    async finish() {
      await sendPart();
      await sending;
      return { kind: 's3', uploadId, etags, sizeBytes };
    },
    async abort() {
      await sending.catch(() => undefined);
      await client
        .send(new AbortMultipartUploadCommand({ ...target, UploadId: uploadId }))
        .catch(() => undefined);
    },
  };
}

/** Opens a bucket of an S3-compatible object store. `allow`: see `createClient`. */
export function createBucketAccess(settings: S3Settings, allow: readonly string[]): StoreAccess {
  const client = createClient(settings, allow);
  const { bucket: Bucket, prefix } = settings;
  const target = (name: string) => ({ Bucket, Key: `${prefix}${checkedName(name)}` });

  const sizeOf = async (name: string): Promise<number | null> =>
    client.send(new HeadObjectCommand(target(name))).then(
      ({ ContentLength }) => ContentLength ?? 0,
      (error: unknown) => {
        if (isMissing(error)) return null;
        throw error;
      },
    );

  /** Lists uploads that were neither completed nor aborted. */
  async function listUploads(
    Prefix: string,
    request: Aborting = {},
  ): Promise<{ Key: string; UploadId: string | undefined }[]> {
    const found: { Key: string; UploadId: string | undefined }[] = [];
    let markers: { KeyMarker?: string; UploadIdMarker?: string } | undefined = {};
    while (markers) {
      const page: ListMultipartUploadsCommandOutput = await client.send(
        new ListMultipartUploadsCommand({ Bucket, Prefix, ...markers }),
        request,
      );
      for (const { Key = '', UploadId } of page.Uploads ?? []) found.push({ Key, UploadId });
      markers = page.IsTruncated
        ? { KeyMarker: page.NextKeyMarker ?? '', UploadIdMarker: page.NextUploadIdMarker ?? '' }
        : undefined;
    }
    return found;
  }

  async function abortUploads(name: string, request: Aborting = {}): Promise<void> {
    const { Key } = target(name);
    for (const upload of await listUploads(Key, request))
      if (upload.Key === Key)
        await client.send(new AbortMultipartUploadCommand({ Bucket, ...upload }), request);
  }

  return {
    toStoreError,

    async startUpload(name) {
      const { UploadId } = await client.send(
        new CreateMultipartUploadCommand({
          ...target(name),
          ContentType: 'application/octet-stream',
        }),
      );
      return createUpload(client, target(name), UploadId ?? '');
    },

    async finalize(name, pending) {
      if (pending.kind !== 's3')
        throw new StoreError('store_refused', 'The upload was started in another store.', false);
      const Parts = pending.etags.map((ETag, at) => ({ ETag, PartNumber: at + 1 }));
      await client
        .send(
          new CompleteMultipartUploadCommand({
            ...target(name),
            UploadId: pending.uploadId,
            MultipartUpload: { Parts },
          }),
        )
        .catch(async (error: unknown) => {
          // An earlier attempt has completed the upload, but its result was lost.
          if (nameOf(error) !== 'NoSuchUpload' || (await sizeOf(name)) !== pending.sizeBytes)
            throw error;
        });
    },

    async *read(name) {
      const { Body } = await client.send(new GetObjectCommand(target(name)));
      if (Body) yield* Body as Readable as AsyncIterable<Buffer>;
    },

    sizeOf,

    async remove(name, { signal } = {}) {
      const request = signal ? { abortSignal: signal } : {};
      // Uploads are removed first: otherwise one could be finalized after the removal.
      await abortUploads(name, request);
      await client.send(new DeleteObjectCommand(target(name)), request);
    },

    abortUploads,

    async listUnfinished() {
      const names = (await listUploads(prefix)).map(({ Key }) => Key.slice(prefix.length));
      return [...new Set(names.filter(isArchiveName))];
    },

    async *list() {
      const pages = paginateListObjectsV2({ client }, { Bucket, Prefix: prefix });
      for await (const { Contents } of pages) {
        for (const { Key = '', Size = 0, LastModified } of Contents ?? []) {
          const name = Key.slice(prefix.length);
          if (isArchiveName(name))
            yield { name, sizeBytes: Size, modifiedAt: LastModified ?? new Date(0) };
        }
      }
    },

    close: () => client.destroy(),
  };
}
