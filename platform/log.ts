import { pino, type Logger } from 'pino';
import pretty from 'pino-pretty';

export type Log = Logger;
export type LogLevelName = 'silent' | 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace';

/** Names of fields whose values are replaced in log lines. */
const REDACTED_FIELDS = [
  'authorization',
  'cookie',
  'password',
  'secret',
  'token',
  'apiKey',
  'payload',
];

/** Creates a logger that writes JSON lines, or readable ones if standard output is a terminal. */
export function createLog(level: LogLevelName, readable = process.stdout.isTTY): Log {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths: REDACTED_FIELDS.flatMap((name) => [name, `*.${name}`]), censor: '********' },
  };
  return readable
    ? pino(options, pretty({ colorize: true, sync: true, ignore: 'requestId' }))
    : pino(options);
}
