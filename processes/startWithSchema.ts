import type { Composition } from './composition/index.ts';

type SchemaDependentWork = {
  /** Resolves, with the reason, if the schema is too new for this version. */
  refused: Promise<Error>;
  stop(): Promise<void>;
};

/** Starts the work of a process when its schema is there, and watches that it stays usable. */
export function startWithSchema(
  { schema, start, log }: Pick<Composition, 'schema' | 'start' | 'log'>,
  signal: AbortSignal,
): SchemaDependentWork {
  const refused = Promise.withResolvers<Error>();
  let stopWatching: (() => Promise<void>) | undefined;
  schema.untilCurrent(signal).then(
    () => {
      if (signal.aborted) return;
      start();
      stopWatching = schema.watch(refused.resolve);
    },
    (error: unknown) => {
      if (signal.aborted) return;
      log.debug({ err: error }, 'the schema does not fit');
      refused.resolve(error instanceof Error ? error : new Error(String(error)));
    },
  );
  return { refused: refused.promise, stop: async () => stopWatching?.() };
}
