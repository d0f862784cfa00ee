import { LRUCache } from 'lru-cache';
import { noteTokenUses, type TokenUse } from '../../../db/auth/tokens.ts';
import type { WriteUnaudited } from '../../../db/core/commit.ts';
import type { Log } from '../../../platform/log.ts';
import { createLoop } from '../../../platform/loop.ts';

export type TokenUses = ReturnType<typeof createTokenUses>;

/** The last use of a token is noted at most this often. */
const NOTE_EVERY_MS = 60_000;
const WRITE_EVERY_MS = 5_000;
/** Uses that wait to be written. Further ones are noted by a later request. */
const MAX_WAITING = 10_000;

/**
 * Notes when and from where tokens were last used, outside of the requests: a failure loses the note
 * and nothing else.
 */
export function createTokenUses({
  writeUnaudited,
  log,
}: {
  writeUnaudited: WriteUnaudited;
  log: Log;
}) {
  const noted = new LRUCache<string, number>({ max: MAX_WAITING });
  let waiting: TokenUse[] = [];

  async function flush(): Promise<void> {
    const uses = waiting;
    waiting = [];
    if (uses.length > 0) await writeUnaudited((db) => noteTokenUses(db, uses));
  }

  const loop = createLoop({ name: 'token uses', everyMs: WRITE_EVERY_MS, log }, async () => {
    await flush();
    return false;
  });

  return {
    /** Notes a use now, if the last one that is known was more than a minute ago. */
    note(id: string, lastUsedAt: Date | null, address: string | null): void {
      const at = new Date();
      const last = Math.max(lastUsedAt?.getTime() ?? 0, noted.get(id) ?? 0);
      if (at.getTime() - last < NOTE_EVERY_MS || waiting.length >= MAX_WAITING) return;
      noted.set(id, at.getTime());
      waiting.push({ id, at, address });
    },

    /** Writes what is noted. */
    flush,

    start: loop.start,

    async stop(): Promise<void> {
      await loop.stop();
      await flush().catch((error: unknown) => log.warn({ err: error }, 'token uses are lost'));
    },
  };
}
