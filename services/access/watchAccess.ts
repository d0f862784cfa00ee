import { ACCESS_TOPIC, accessTopicOf } from '../../db/core/accessTopics.ts';
import type { Notifications } from '../../db/core/notifications.ts';
import { hasAccount, type Caller } from '../../domain/shared/caller.ts';
import { createBoundedQueue } from '../../platform/boundedQueue.ts';

export type WatchAccess = ReturnType<typeof createWatchAccess>;

/** Changes within this time are checked together: one in this process is announced twice. */
const MERGE_MS = 100;

/** A change of a role concerns every open stream; their checks must not delay requests. */
const MAX_CONCURRENT_CHECKS = 4;
const MAX_QUEUED_CHECKS = 5_000;

/** Only roles decide for callers without an account. */
const topicsOf = ({ kind, actorId, session, token }: Caller): string[] => [
  ACCESS_TOPIC,
  ...(hasAccount({ kind }) ? [accessTopicOf('user', actorId)] : []),
  ...(session ? [accessTopicOf('session', session.id)] : []),
  ...(token ? [accessTopicOf('token', token.id)] : []),
];

/** Says when what a caller may do may have changed. Notifications can be lost, so callers must poll as well. */
export function createWatchAccess({ notifications }: { notifications: Pick<Notifications, 'on'> }) {
  const checks = createBoundedQueue({
    maxRunning: MAX_CONCURRENT_CHECKS,
    maxQueued: MAX_QUEUED_CHECKS,
    busy: 'Too many access checks are waiting.',
  });

  /**
   * Calls `check`, which must not throw, after each change that may concern a caller. Returns the
   * function that ends it.
   */
  return (caller: Caller, check: () => Promise<void>): (() => void) => {
    let timer: NodeJS.Timeout | undefined;
    let isWatching = true;
    const run = () => {
      timer = undefined;
      // A check that finds the queue full is left to the poll.
      checks.run(async () => (isWatching ? check() : undefined)).catch(() => undefined);
    };
    const onChange = () => void (timer ??= setTimeout(run, MERGE_MS));
    const unsubscribe = topicsOf(caller).map((topic) => notifications.on(topic, onChange));
    return () => {
      isWatching = false;
      clearTimeout(timer);
      for (const end of unsubscribe) end();
    };
  };
}
