import type { Knex } from '../../db/core/knex.ts';
import type { Notifications } from '../../db/core/notifications.ts';
import type { RemoteType } from '../../db/models/RemoteType.ts';
import { listKnownTypes, listSecretSchemas, TYPES_TOPIC } from '../../db/runners/types.ts';
import { DEFAULT_RETRY, withPolicy } from '../../domain/jobs/retry.ts';
import type { RemoteJobType } from '../../domain/jobs/jobType.ts';
import type { RemoteTypeDefinition } from '../../domain/runners/definition.ts';
import type { RemoteTypeData } from '../../domain/runners/records.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import type { Log } from '../../platform/log.ts';
import { createLoop } from '../../platform/loop.ts';
import type { JobTypes } from '../jobTypes/registry.ts';

/** Types of runners that an installation can have. */
export const MAX_REMOTE_TYPES = 500;

/** Types that a pool can have: one must not take those of all others. */
export const MAX_TYPES_OF_POOL = 200;

/** Notifications can be lost. */
const REFRESH_MS = 30_000;

/** Types that could not be read are read again after this time. */
const RETRY_MS = 1_000;

/** A record of a type as a job type of this process. Error: the record has no payload schema. */
export function toJobType(
  {
    name,
    pool,
    digest,
    shape,
    definition,
    state,
  }: Pick<RemoteTypeData, 'name' | 'pool' | 'digest' | 'shape' | 'definition' | 'state'>,
  secretSchemas: readonly object[] = [],
): RemoteJobType {
  const known: RemoteTypeDefinition = assertDefined(definition, 'definition');
  const { retry = {} } = known;
  // A script is not repeated unless its author says that it may be.
  const policy = withPolicy({ ...DEFAULT_RETRY, maxAttempts: 1 }, retry);
  return {
    name,
    summary: known.summary,
    payload: assertDefined(
      known.payload,
      'definition.payload',
    ) as unknown as RemoteJobType['payload'],
    permission: null,
    access: known.access,
    targets: known.targets,
    createdOnlyBy: null,
    emitsEvents: true,
    authorizesItself: false,
    retry: policy,
    timeoutMs: known.timeoutSeconds * 1_000,
    isRepeatable: () => policy.maxAttempts > 1,
    redact: (payload) => payload,
    lane: 'remote',
    pool,
    digest: digest ?? '',
    shape,
    definition: known,
    secretSchemas,
    isEnabled: state === 'accepted',
  };
}

/** Reads the payload schemas with secret fields of types; those of a type again after it has changed. */
function createSecretSchemas(db: Knex) {
  let known = new Map<string, { version: number; schemas: readonly object[] }>();
  return {
    /** After a failover, a version may be that of other schemas. */
    forget: (): void => known.clear(),

    async read(records: readonly RemoteType[]): Promise<(name: string) => readonly object[]> {
      const changed = records.filter(({ name, version }) => known.get(name)?.version !== version);
      const names = changed.map(({ name }) => name);
      const found = names.length === 0 ? [] : await listSecretSchemas(db, names);
      const read = new Map(found.map(({ name, schemas }) => [name, schemas]));
      known = new Map(
        records.map(({ name, version }) => {
          const before = known.get(name);
          const schemas = before?.version === version ? before.schemas : (read.get(name) ?? []);
          return [name, { version, schemas }];
        }),
      );
      return (name) => known.get(name)?.schemas ?? [];
    },
  };
}

/** The types of those records that can be read: a bad one must not stop the others. */
export function toJobTypes<R extends RemoteType>(
  records: readonly R[],
  schemasOf: (name: string) => readonly object[] = () => [],
  onUnreadable: (record: R, error: unknown) => void = () => undefined,
): { record: R; type: RemoteJobType }[] {
  return records.flatMap((record) => {
    try {
      return [{ record, type: toJobType(record, schemasOf(record.name)) }];
    } catch (error) {
      onUnreadable(record, error);
      return [];
    }
  });
}

/** Logs each record that cannot be read once, until it changes or can be read again. */
function createUnreadableLog(log: Log) {
  let logged = new Map<string, number>();
  return (): { note(record: RemoteType, error: unknown): void } => {
    const before = logged;
    logged = new Map();
    return {
      note({ name, version }, error) {
        logged.set(name, version);
        if (before.get(name) !== version)
          log.error({ type: name, err: error }, 'a job type of runners cannot be read');
      },
    };
  };
}

type Deps = { db: Knex; jobTypes: JobTypes; notifications: Notifications; log: Log };

/** Keeps the job types of runners in the registry of this process as they are in the database. */
export function createRemoteTypes({ db, jobTypes, notifications, log }: Deps) {
  let unsubscribe: (() => void) | undefined;
  const secretSchemas = createSecretSchemas(db);
  const unreadable = createUnreadableLog(log);
  notifications.onConnected(secretSchemas.forget);
  jobTypes.useRemote(async () => {
    const records = await listKnownTypes(db, MAX_REMOTE_TYPES);
    const schemasOf = await secretSchemas.read(records);
    return toJobTypes(records, schemasOf, unreadable().note).map(({ type }) => type);
  });
  const loop = createLoop({ name: 'job types of runners', everyMs: REFRESH_MS, log }, async () => {
    try {
      await jobTypes.refresh();
      return false;
    } catch (error) {
      log.warn({ err: error }, 'the job types of runners could not be read');
      return RETRY_MS;
    }
  });
  return {
    start(): void {
      loop.start();
      unsubscribe = notifications.on(TYPES_TOPIC, loop.wake);
    },

    async stop(): Promise<void> {
      unsubscribe?.();
      await loop.stop();
    },
  };
}
