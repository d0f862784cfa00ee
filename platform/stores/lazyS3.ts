import type { S3Settings } from './s3.ts';
import type { ArchiveStore } from './store.ts';

/**
 * An S3 store whose SDK, which is slow to load, is imported with the first operation. Parameters as of
 * `createS3Store`.
 */
export function createLazyS3Store(settings: S3Settings, allow: readonly string[]): ArchiveStore {
  let loading: Promise<ArchiveStore> | undefined;
  const load = () =>
    (loading ??= import('./s3.ts').then(({ createS3Store }) => createS3Store(settings, allow)));
  return {
    kind: 's3',
    startUpload: async (name) => (await load()).startUpload(name),
    finalize: async (name, pending) => (await load()).finalize(name, pending),
    async *read(name) {
      yield* (await load()).read(name);
    },
    sizeOf: async (name) => (await load()).sizeOf(name),
    remove: async (name, options) => (await load()).remove(name, options),
    abortUploads: async (name) => (await load()).abortUploads(name),
    listUnfinished: async () => (await load()).listUnfinished(),
    async *list() {
      yield* (await load()).list();
    },
    close: () => void loading?.then((store) => store.close()),
  };
}
