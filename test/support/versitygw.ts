import {
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { spawn } from 'node:child_process';
import { mkdtemp, mkdir, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { freePort } from '../../dev/freePort.ts';
import { eventually } from './eventually.ts';
import { pathOf } from './programs.ts';

const KEYS = { accessKeyId: 'test-access', secretAccessKey: 'test-secret-key' };
const BUCKET = 'backups';

/** A real S3 server on loopback, with one bucket. */
export async function startVersitygw() {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-s3-'));
  await mkdir(path.join(folder, 'data'));
  const port = await freePort(0);
  const endpoint = `http://127.0.0.1:${port}`;
  const launch = () =>
    spawn(
      pathOf('versitygw'),
      [
        '--port',
        `127.0.0.1:${port}`,
        '--access',
        KEYS.accessKeyId,
        '--secret',
        KEYS.secretAccessKey,
        '--quiet',
        'posix',
        path.join(folder, 'data'),
      ],
      { stdio: 'ignore' },
    );
  let server = launch();
  const client = new S3Client({
    endpoint,
    forcePathStyle: true,
    region: 'us-east-1',
    credentials: KEYS,
    maxAttempts: 1,
  });
  await eventually(
    () =>
      client.send(new CreateBucketCommand({ Bucket: BUCKET })).then(
        () => true,
        (error: unknown) => error instanceof Error && error.name === 'BucketAlreadyOwnedByYou',
      ),
    (up) => up,
    { withinMs: 30_000 },
  );
  const waitForExit = () =>
    new Promise((resolve) =>
      server.exitCode === null ? server.once('exit', resolve) : resolve(undefined),
    );
  const endServer = async (signal: NodeJS.Signals) => {
    const exited = waitForExit();
    server.kill(signal);
    await exited;
  };
  return {
    env: {
      HOLDFAST_BACKUP_S3_BUCKET: BUCKET,
      HOLDFAST_BACKUP_S3_ENDPOINT: endpoint,
      HOLDFAST_BACKUP_S3_PREFIX: 'nightly/',
      HOLDFAST_BACKUP_S3_ACCESS_KEY_ID: KEYS.accessKeyId,
      HOLDFAST_BACKUP_S3_SECRET_ACCESS_KEY: KEYS.secretAccessKey,
    },
    keys: async (): Promise<string[]> =>
      ((await client.send(new ListObjectsV2Command({ Bucket: BUCKET }))).Contents ?? [])
        .map(({ Key = '' }) => Key)
        .sort(),
    uploads: async (): Promise<string[]> =>
      ((await client.send(new ListMultipartUploadsCommand({ Bucket: BUCKET }))).Uploads ?? []).map(
        ({ Key = '' }) => Key,
      ),
    startUpload: (Key: string) =>
      client.send(new CreateMultipartUploadCommand({ Bucket: BUCKET, Key })),
    put: (Key: string, Body: Uint8Array) =>
      client.send(new PutObjectCommand({ Bucket: BUCKET, Key, Body })),
    /** Ends the server as a power cut would, and starts it again on the same data. */
    stopServer: () => endServer('SIGKILL'),
    startServer: () => void (server = launch()),
    async stop() {
      await endServer('SIGTERM');
      client.destroy();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
