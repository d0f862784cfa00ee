import { isProblem } from '../../parts/problems.ts';

/** A message of a stream, without the types of the stream: it needs a browser. */
type Message = { id: string | undefined; event: string; data: string };

/** The progress of a job that runs; undefined while it does not arrive. */
export type Live<Progress> = {
  progress: Progress | null | undefined;
  lastLine: string | undefined;
};

type Options<Progress> = {
  /** Opens the stream of the log, after a message if it has an id. */
  read: (lastEventId: string | undefined) => AsyncIterable<Message>;
  onLive: (live: Live<Progress>) => void;
  wait: (ms: number) => Promise<void>;
  signal: AbortSignal;
};

const RECONNECT_MS = 5_000;

/** Errors that another attempt does not mend: no right, no such job. */
const isLasting = (error: unknown): boolean =>
  isProblem(error) && error.status >= 400 && error.status < 500 && error.status !== 429;

/**
 * Follows a job until its log has ended. The server ends a stream when the token that opened it expires,
 * and connections break: the next stream goes on after the last message.
 */
export async function followProgress<Progress>({
  read,
  onLive,
  wait,
  signal,
}: Options<Progress>): Promise<void> {
  let live: Live<Progress> = { progress: undefined, lastLine: undefined };
  let lastEventId: string | undefined;
  const show = (change: Partial<Live<Progress>>) => {
    live = { ...live, ...change };
    if (!signal.aborted) onLive(live);
  };
  while (!signal.aborted) {
    try {
      for await (const { id, event, data } of read(lastEventId)) {
        lastEventId = id ?? lastEventId;
        if (event === 'end') return;
        if (event === 'log') show({ lastLine: (JSON.parse(data) as { message: string }).message });
        if (event === 'job')
          show({ progress: (JSON.parse(data) as { progress: Progress | null }).progress });
      }
    } catch (error) {
      if (isLasting(error)) return;
    }
    // What was read of the job may be newer than the last message.
    show({ progress: undefined });
    await wait(RECONNECT_MS);
  }
}
