/** How much work tests do that could go on for ever. The defaults suit every run; nightly runs set more. */

const factor = (name: string): number => {
  const value = Number(process.env[name] ?? 1);
  if (!(value > 0)) throw new Error(`${name} must be a positive number`);
  return value;
};

/** Runs of a property-based test, or rounds of a race: `runs` times the environment variable PROPERTY_RUNS. */
export const propertyRuns = (runs: number): number => Math.ceil(runs * factor('PROPERTY_RUNS'));

/** Rounds of a test that kills processes at random moments: the environment variable KILL_ROUNDS, 1 by default. */
export const killRounds = (): number => Math.ceil(factor('KILL_ROUNDS'));

/**
 * Whether tests also try what only repeats: combinations of which each part is tried by default. True if PROPERTY_RUNS is
 * more than 1.
 */
export const isThorough = (): boolean => factor('PROPERTY_RUNS') > 1;

/** How much longer than by default a test file may take. */
export const effortFactor = (): number =>
  Math.max(1, factor('PROPERTY_RUNS'), factor('KILL_ROUNDS'));
