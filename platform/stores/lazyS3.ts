import { createStore } from './createStore.ts';
import type { S3Settings } from './s3.ts';
import type { ArchiveStore } from './store.ts';

/**
 * Stores archives in a bucket. The SDK, which is slow to load, is imported with the first operation. Parameters as
 * of `createBucketAccess`.
 */
export const createS3Store = (settings: S3Settings, allow: readonly string[]): ArchiveStore =>
  createStore('s3', async () => (await import('./s3.ts')).createBucketAccess(settings, allow));
