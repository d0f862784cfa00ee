import type { GroupingConnection, OnSend, Statement } from './statementGroups.ts';

/** A connection of the driver, as far as it is used here. */
type Connection = {
  connection: GroupingConnection['connection'] & {
    stream: { bytesRead: number; destroy(error: Error): void };
  };
  once(event: 'end', listener: () => void): void;
};

/** The answer to a statement may come this much later than its time limit. */
const MARGIN_MS = 10_000;
/** Connections that wait for an answer are checked this often. */
const CHECK_MS = 1_000;

/** How a transaction changes the limit of its own statements. */
const SET_LOCAL = /\bSET LOCAL statement_timeout = (\d+)/gi;
const SET_CONFIG = /\bset_config\('statement_timeout', \$1, true\)/i;
/** Before a transaction, and after it, the limit is that of the connection. */
const IS_EDGE = /^(BEGIN\b.*|(COMMIT|ROLLBACK);?)$/is;

/** The limit, in milliseconds, that a statement sets until its transaction ends; undefined for others. */
export function limitSetBy({
  text,
  values = [],
}: Pick<Statement, 'text' | 'values'>): number | undefined {
  if (!text.includes('statement_timeout')) return undefined;
  const value = SET_CONFIG.test(text) ? values[0] : [...text.matchAll(SET_LOCAL)].at(-1)?.[1];
  return value === undefined ? undefined : Number(value);
}

/**
 * Closes a connection whose server does not answer. PostgreSQL ends each statement within its time limit, and
 * says so: silence for longer means that the machine is lost, or that the network drops what is sent. The
 * operating system would notice after a quarter of an hour, since it sends no keep-alive while data is
 * unacknowledged, and Node cannot set TCP_USER_TIMEOUT.
 *
 * Statements without a limit are not watched.
 */
export function limitSilence(
  connection: Connection,
  statementTimeoutMs: number,
  marginMs = MARGIN_MS,
): OnSend {
  const { connection: wire } = connection;
  let unanswered = 0;
  let limitMs = statementTimeoutMs;
  /** Statements that are sent in one message are answered together. */
  let inMessage = 1;
  let [silentMs, bytesRead] = [0, 0];

  // Rounds are counted, so that a process which was suspended does not take its own pause for silence.
  const timer = setInterval(() => {
    silentMs = wire.stream.bytesRead === bytesRead ? silentMs + CHECK_MS : 0;
    bytesRead = wire.stream.bytesRead;
    if (unanswered === 0 || limitMs === 0 || silentMs < limitMs * inMessage + marginMs) return;
    wire.stream.destroy(
      Object.assign(new Error('PostgreSQL does not answer'), { code: 'ETIMEDOUT' }),
    );
  }, CHECK_MS).unref();
  connection.once('end', () => clearInterval(timer));

  return (statement) => {
    const { waits = false, isLast = false, text } = statement;
    const isEdge = IS_EDGE.test(text);
    if (unanswered++ === 0) silentMs = 0;
    limitMs = limitSetBy(statement) ?? limitMs;
    if (waits || isLast) inMessage += 1;
    return () => {
      unanswered -= 1;
      silentMs = 0;
      if (!waits) inMessage = 1;
      if (isEdge) limitMs = statementTimeoutMs;
    };
  };
}
