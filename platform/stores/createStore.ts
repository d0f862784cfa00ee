import type { ArchiveStore, ArchiveUpload, StoreKind } from './store.ts';

/** What a store does, with the errors of the system that has the archives. */
export type StoreAccess = Omit<ArchiveStore, 'kind'> & {
  /** Converts such an error to `StoreError`; what is none of the system is returned as it is. */
  toStoreError(error: unknown): unknown;
};

/** A store that is opened with its first operation, and whose operations fail with `StoreError`. */
export function createStore(kind: StoreKind, open: () => Promise<StoreAccess>): ArchiveStore {
  let opening: Promise<StoreAccess> | undefined;
  const opened = () => (opening ??= open());

  async function run<T>(operation: (access: StoreAccess) => Promise<T>): Promise<T> {
    const access = await opened();
    try {
      return await operation(access);
    } catch (error) {
      throw access.toStoreError(error);
    }
  }

  async function* iterate<T>(items: (access: StoreAccess) => AsyncIterable<T>): AsyncIterable<T> {
    const access = await opened();
    try {
      yield* items(access);
    } catch (error) {
      throw access.toStoreError(error);
    }
  }

  const withStoreErrors = (upload: ArchiveUpload): ArchiveUpload => ({
    write: (bytes) => run(() => upload.write(bytes)),
    finish: () => run(() => upload.finish()),
    abort: () => run(() => upload.abort()),
  });

  return {
    kind,
    startUpload: (name) => run(async (access) => withStoreErrors(await access.startUpload(name))),
    finalize: (name, pending) => run((access) => access.finalize(name, pending)),
    read: (name) => iterate((access) => access.read(name)),
    sizeOf: (name) => run((access) => access.sizeOf(name)),
    remove: (name, options) => run((access) => access.remove(name, options)),
    abortUploads: (name) => run((access) => access.abortUploads(name)),
    listUnfinished: () => run((access) => access.listUnfinished()),
    list: () => iterate((access) => access.list()),
    close: () =>
      void opening?.then(
        (access) => access.close(),
        () => undefined,
      ),
  };
}
