import { pino, type Logger } from 'pino';
import pretty from 'pino-pretty';

export type Log = Logger;
export type LogLevelName = 'silent' | 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace';

/** Header and field names whose values never reach a log. */
const SECRETS = ['authorization', 'cookie', 'password', 'secret', 'token', 'apiKey', 'payload'];

/** A logger that writes JSON lines, or readable ones when standard output is a terminal. */
export function createLog(level: LogLevelName, readable = process.stdout.isTTY): Log {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths: SECRETS.flatMap((name) => [name, `*.${name}`]), censor: '********' },
  };
  return readable
    ? pino(options, pretty({ colorize: true, sync: true, ignore: 'requestId' }))
    : pino(options);
}
