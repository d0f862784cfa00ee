import type { LogLine } from './logStore.ts';

/** A message of a stream of server-sent events. */
export type StreamMessage = { event: string; data: string };

type LineOfApi = Omit<LogLine, 'time'> & { at: string };

/** A line of a job's log as the API has it. */
export const lineOf = ({ at, ...line }: LineOfApi): LogLine => ({ ...line, time: at });

/**
 * Passes on what the stream of a job's log has: lines to `onLines`, the states of the job to `onJob`.
 * Ends with the log. Error: the problem that ended it early, or that it broke off.
 */
export async function passLines(
  messages: AsyncIterable<StreamMessage>,
  onLines: (lines: readonly LogLine[]) => void,
  onJob?: (state: unknown) => void,
): Promise<void> {
  for await (const { event, data } of messages) {
    if (event === 'log') onLines([lineOf(JSON.parse(data) as LineOfApi)]);
    else if (event === 'job') {
      onLines([]);
      onJob?.(JSON.parse(data));
    } else if (event === 'end') return;
    else if (event === 'error') throw JSON.parse(data);
  }
  throw new Error('The connection was closed before the end of the log.');
}
