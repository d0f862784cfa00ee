import os from 'node:os';
import { pino, type Logger } from 'pino';
import pretty from 'pino-pretty';
import { jobWorkflowId } from '../domain/dispatch/workflowIds.ts';
import { loggedError } from './loggedError.ts';
import { createRepeatedWarnings } from './repeatedWarnings.ts';
import { currentTraceId } from './tracing.ts';
import { APP_VERSION } from './version.ts';

export type Log = Logger;

export const LOG_LEVELS = ['silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace'] as const;
export type LogLevelName = (typeof LOG_LEVELS)[number];

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

/** What each line says about the process that wrote it. */
export type LogIdentity = { role: string; instance: string };

/** The name of a process among others of its role, unless it is configured: machine and process id. */
export const defaultInstance = (): string => `${os.hostname()}:${process.pid}`;

/** What a logger adds to its lines, leaves out and replaces. */
export const logOptions = (level: LogLevelName, { role, instance }: LogIdentity) => ({
  level,
  base: { role, instance, version: APP_VERSION },
  timestamp: pino.stdTimeFunctions.isoTime,
  formatters: { level: (label: string) => ({ level: label }) },
  serializers: {
    err: (error: unknown) => loggedError(error),
    // So the SDK of Temporal names the error of an activity or a workflow.
    error: (error: unknown) => (error instanceof Error ? loggedError(error) : error),
  },
  hooks: { logMethod: createRepeatedWarnings() },
  mixin: () => {
    const traceId = currentTraceId();
    return traceId === undefined ? {} : { traceId };
  },
  redact: { paths: REDACTED_FIELDS.flatMap((name) => [name, `*.${name}`]), censor: '********' },
});

/**
 * Creates a logger that writes JSON lines, or readable ones if standard output is a terminal. Each line
 * has role, instance and version of the process.
 */
export function createLog(
  level: LogLevelName,
  readable = process.stdout.isTTY,
  identity: LogIdentity = { role: 'cli', instance: defaultInstance() },
): Log {
  const options = logOptions(level, identity);
  return readable
    ? pino(
        options,
        pretty({ colorize: true, sync: true, ignore: 'requestId,role,instance,version' }),
      )
    : pino(options);
}

/** A logger whose lines name a job, and its workflow: that of a shared run, or its own. */
export const jobLog = (log: Log, jobId: string, workflowId?: string | null): Log =>
  log.child({ jobId, workflowId: workflowId ?? jobWorkflowId(jobId) });
