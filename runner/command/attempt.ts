import type { LogLevel } from '../../domain/jobs/jobs.ts';

/** What a job belongs to, for the arguments of its command. */
export type AttemptTarget = { kind: 'site' | 'device'; id: string; name: string };

/** What a runner must renew before it ends: another runner may begin the next attempt then. */
export type Lease = {
  /** How long a command may still run, in milliseconds. */
  leftMs(): number;
  onRenewed(listener: () => void): void;
};

/** One attempt of a job, as the runner has got it. */
export type Attempt = {
  jobId: string;
  attempt: number;
  payload: Record<string, unknown>;
  target: AttemptTarget | null;
  /** Secrets of Holdfast, by the variable that the type has declared for each. */
  secrets: Readonly<Record<string, string>>;
  timeoutMs: number;
  /** Undefined if no other attempt can follow. */
  lease?: Lease | undefined;
};

/** Where a command reports to. None of these may throw or wait. */
export type AttemptTools = {
  line(level: LogLevel, message: string, data: object | undefined, at: Date): void;
  progress(percent: number, message: string | undefined): void;
  /** Stores a file that the command has left at its end. It is awaited. Error: a phrase in its message, which becomes a line of the log. */
  artifact(name: string, file: string): Promise<void>;
};

export type StopCode = 'cancelled' | 'interrupted' | 'attempt_lost';

type StopOptions = { code?: StopCode; maxGraceMs?: number; cause?: unknown };

/**
 * Why a command is stopped before its end: the reason of the signal of an attempt. With a `cause`, the machine of the
 * runner keeps the command from starting.
 */
export class StopRequest extends Error {
  /** SIGKILL follows after this time, if that is before the grace period of the type ends. */
  readonly maxGraceMs: number;
  /** The code with which the attempt fails. An attempt that is `interrupted` is not counted. */
  readonly code: StopCode;

  constructor(
    message: string,
    { code = 'attempt_lost', maxGraceMs = Number.POSITIVE_INFINITY, cause }: StopOptions = {},
  ) {
    super(message, { cause });
    this.name = 'StopRequest';
    this.code = code;
    this.maxGraceMs = maxGraceMs;
  }
}
