import type { Caller } from '../../domain/shared/caller.ts';

/** The runner token of a request: which it is, and the pools whose jobs it may take. */
export type RunnerIdentity = NonNullable<Caller['runner']>;
