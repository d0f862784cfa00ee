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
import { isIP } from 'node:net';
import type { Readable } from 'node:stream';
import {
  createAddressGuard,
  hostOf,
  notAllowed,
  OutboundError,
  PRIVATE_NETWORKS,
} from '../addressGuard.ts';
import {
  ARCHIVE_SUFFIX,
  safeName,
  StoreError,
  type ArchiveStore,
  type ArchiveUpload,
  type Pending,
} from './store.ts';

/** `endpoint` is left out for AWS itself. `prefix` goes before every name. */
export type S3Settings = {
  bucket: string;
  prefix: string;
  region: string;
  endpoint: string | undefined;
  accessKeyId: string;
  secretAccessKey: string;
};

const CONNECT_MS = 5_000;
/** A part, or a read that stalls, may take so long. */
const REQUEST_MS = 120_000;
const TRIES = 3;

const MIB = 1 << 20;
const MAX_PARTS = 10_000;

/** Parts grow with the archive, since there may be 10,000 of them; two are in memory at once. */
const partBytes = (number: number): number =>
  8 * MIB * 2 ** Math.min(3, Math.floor(number / 1_000));

const nameOf = (error: unknown): string => (error instanceof Error ? error.name : '');
const isMissing = (error: unknown): boolean =>
  ['NoSuchKey', 'NotFound'].includes(nameOf(error)) ||
  (error instanceof S3ServiceException &&
    error.$metadata.httpStatusCode === 404 &&
    nameOf(error) !== 'NoSuchBucket');

/** Errors of the SDK in our words: they may quote requests with their headers. */
function toStoreError(error: unknown): unknown {
  if (error instanceof StoreError) return error;
  if (isMissing(error))
    return new StoreError('archive_missing', 'The archive is not in the bucket.', false);
  if (error instanceof S3ServiceException) {
    const status = error.$metadata.httpStatusCode ?? 0;
    const refused = status >= 400 && status < 500 && ![408, 409, 429].includes(status);
    return new StoreError(
      refused ? 'store_refused' : 'store_unavailable',
      `The object store answers ${error.name} (${status}).`,
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

async function told<T>(step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (error) {
    throw toStoreError(error);
  }
}

/**
 * A client whose connections go to public and private addresses, never to link-local ones, and to `allow` (CIDRs). Checksums
 * beyond those of the protocol are left out, since not every server knows them: an archive is read again before it counts.
 */
function createClient(
  { region, endpoint, accessKeyId, secretAccessKey }: S3Settings,
  allow: readonly string[],
): S3Client {
  const guard = createAddressGuard([...allow, ...PRIVATE_NETWORKS]);
  const host = endpoint === undefined ? '' : hostOf(new URL(endpoint));
  if (isIP(host) !== 0 && !guard.permits(host)) throw notAllowed(host);
  const agent = { keepAlive: true, maxSockets: 16, lookup: guard.lookup };
  return new S3Client({
    region,
    ...(endpoint !== undefined && { endpoint, forcePathStyle: true }),
    credentials: { accessKeyId, secretAccessKey },
    maxAttempts: TRIES,
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

/** Sends parts as they fill, one while the next fills. */
function createUpload(
  client: S3Client,
  target: { Bucket: string; Key: string },
  uploadId: string,
): ArchiveUpload {
  const etags: string[] = [];
  let [held, heldBytes, sizeBytes]: [Buffer[], number, number] = [[], 0, 0];
  let sending: Promise<void> = Promise.resolve();

  async function send(): Promise<void> {
    await sending;
    const number = etags.length + 1;
    if (number > MAX_PARTS)
      throw new StoreError('store_full', 'The archive is larger than an object can be.', false);
    const body = Buffer.concat(held);
    [held, heldBytes] = [[], 0];
    sending = client
      .send(
        new UploadPartCommand({ ...target, UploadId: uploadId, PartNumber: number, Body: body }),
      )
      .then(({ ETag }) => void etags.push(ETag ?? ''));
    // Its failure is met when it is waited for.
    sending.catch(() => undefined);
  }

  return {
    write: (bytes) =>
      told(async () => {
        held.push(bytes);
        heldBytes += bytes.length;
        sizeBytes += bytes.length;
        if (heldBytes >= partBytes(etags.length)) await send();
      }),
    finish: () =>
      told(async (): Promise<Pending> => {
        await send();
        await sending;
        return { kind: 's3', uploadId, etags, sizeBytes };
      }),
    abort: async () => {
      await sending.catch(() => undefined);
      await client
        .send(new AbortMultipartUploadCommand({ ...target, UploadId: uploadId }))
        .catch(() => undefined);
    },
  };
}

/** Archives in a bucket of an S3-compatible object store. `allow` (CIDRs) are addresses beyond the usual ones. */
export function createS3Store(settings: S3Settings, allow: readonly string[]): ArchiveStore {
  const client = createClient(settings, allow);
  const { bucket: Bucket, prefix } = settings;
  const target = (name: string) => ({ Bucket, Key: `${prefix}${safeName(name)}` });

  const sizeOf = async (name: string): Promise<number | null> =>
    client.send(new HeadObjectCommand(target(name))).then(
      ({ ContentLength }) => ContentLength ?? 0,
      (error: unknown) => {
        if (isMissing(error)) return null;
        throw toStoreError(error);
      },
    );

  /** Uploads that were begun and neither completed nor aborted. */
  async function uploads(Prefix: string): Promise<{ Key: string; UploadId: string | undefined }[]> {
    const found: { Key: string; UploadId: string | undefined }[] = [];
    let markers: { KeyMarker?: string; UploadIdMarker?: string } | undefined = {};
    while (markers) {
      const page: ListMultipartUploadsCommandOutput = await client.send(
        new ListMultipartUploadsCommand({ Bucket, Prefix, ...markers }),
      );
      for (const { Key = '', UploadId } of page.Uploads ?? []) found.push({ Key, UploadId });
      markers = page.IsTruncated
        ? { KeyMarker: page.NextKeyMarker ?? '', UploadIdMarker: page.NextUploadIdMarker ?? '' }
        : undefined;
    }
    return found;
  }

  async function clear(name: string): Promise<void> {
    const { Key } = target(name);
    for (const upload of await uploads(Key))
      if (upload.Key === Key)
        await client.send(new AbortMultipartUploadCommand({ Bucket, ...upload }));
  }

  return {
    kind: 's3',

    begin: (name) =>
      told(async () => {
        const { UploadId } = await client.send(
          new CreateMultipartUploadCommand({
            ...target(name),
            ContentType: 'application/octet-stream',
          }),
        );
        return createUpload(client, target(name), UploadId ?? '');
      }),

    seal: (name, pending) =>
      told(async () => {
        if (pending.kind !== 's3')
          throw new StoreError('store_refused', 'The archive was begun in another store.', false);
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
            // Done before, by an attempt that could not say so.
            if (nameOf(error) !== 'NoSuchUpload' || (await sizeOf(name)) !== pending.sizeBytes)
              throw error;
          });
      }),

    async *read(name) {
      try {
        const { Body } = await client.send(new GetObjectCommand(target(name)));
        if (Body) yield* Body as Readable as AsyncIterable<Buffer>;
      } catch (error) {
        throw toStoreError(error);
      }
    },

    sizeOf,

    remove: (name) =>
      told(async () => {
        // What is begun goes first: nothing can become an archive any more when that is removed.
        await clear(name);
        await client.send(new DeleteObjectCommand(target(name)));
      }),

    clear: (name) => told(() => clear(name)),

    unfinished: () =>
      told(async () => [
        ...new Set((await uploads(prefix)).map(({ Key }) => Key.slice(prefix.length))),
      ]),

    async *list() {
      try {
        for await (const { Contents } of paginateListObjectsV2(
          { client },
          { Bucket, Prefix: prefix },
        )) {
          for (const { Key = '', Size = 0, LastModified } of Contents ?? []) {
            const name = Key.slice(prefix.length);
            if (name.endsWith(ARCHIVE_SUFFIX) && !name.includes('/'))
              yield { name, sizeBytes: Size, modifiedAt: LastModified ?? new Date(0) };
          }
        }
      } catch (error) {
        throw toStoreError(error);
      }
    },

    close: () => client.destroy(),
  };
}
