import { answer, api, Problem, type Schemas } from '../../app/api.ts';
import { readStream } from '../../app/stream.ts';
import type { LogSource } from '../../parts/log/logReader.ts';
import type { LogLine } from '../../parts/log/logStore.ts';
import type { Job } from './jobQueries.ts';

/** What a log stream says about its job: first, and after each change. */
export type JobState = Pick<Job, 'status' | 'progress'> & { attempt: number };

type Options = {
  jobId: string;
  /** The number of the last line, if the job has ended. Without it the log is followed. */
  total: number | undefined;
  onState: (state: JobState) => void;
  /** Called when the log has ended. */
  onEnd: () => void;
};

const toLine = ({ at, ...line }: Schemas['LogLine']): LogLine => ({ ...line, time: at });

/** The problem in the last message of a stream that has ended early. */
function problemIn(data: string): Problem {
  const { status, code, title, detail, requestId } = JSON.parse(data) as Schemas['Problem'];
  return new Problem({
    status,
    code,
    title,
    detail: detail ?? title,
    requestId,
  });
}

async function follow(
  { jobId, onState, onEnd }: Options,
  afterLine: number,
  onLines: (lines: readonly LogLine[]) => void,
  signal: AbortSignal,
): Promise<void> {
  const path = `/api/jobs/${encodeURIComponent(jobId)}/logs?follow=true`;
  const stream = readStream(path, { signal, lastEventId: String(afterLine) });
  for await (const { event, data } of unbroken(stream)) {
    if (event === 'log') onLines([toLine(JSON.parse(data) as Schemas['LogLine'])]);
    else if (event === 'job') {
      // It comes first: the connection is made.
      onLines([]);
      onState(JSON.parse(data) as JobState);
    } else if (event === 'error') throw problemIn(data);
    else if (event === 'end') {
      onEnd();
      return;
    }
  }
  // A stream without `end` was cut off: the reader opens another one after its last line.
  throw interrupted();
}

const interrupted = (): Problem =>
  new Problem({
    status: 0,
    code: 'network',
    title: 'The connection was interrupted',
    detail: 'The log goes on when the connection is back.',
  });

/** The messages of a stream. Error: a problem, also if the connection breaks. */
async function* unbroken<Message>(stream: AsyncIterable<Message>): AsyncGenerator<Message> {
  try {
    yield* stream;
  } catch (error) {
    throw error instanceof TypeError ? interrupted() : error;
  }
}

/** The log of a job, and its state while it is followed. */
export const jobLogSource = (options: Options): LogSource => ({
  total: options.total,
  read: async (fromLine, limit, signal) => {
    const page = await answer(
      api.GET('/api/jobs/{jobId}/logs', {
        params: {
          path: { jobId: options.jobId },
          query: { limit },
          header: { 'Last-Event-ID': String(fromLine - 1) },
        },
        signal,
      }),
    );
    if (typeof page === 'string') return { lines: [], hasMore: false };
    return { lines: page.items.map(toLine), hasMore: page.nextCursor !== null };
  },
  ...(options.total === undefined && {
    follow: (afterLine, onLines, signal) => follow(options, afterLine, onLines, signal),
  }),
});
