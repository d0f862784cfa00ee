import type { TObject } from 'typebox';
import type { ProviderKind, TestStep } from '../../domain/providers.ts';

/** What the code of one kind of provider declares about itself. */
export type Kind = {
  kind: ProviderKind;
  /** The configuration, secrets included. */
  config: TObject;
  /** Fields of the configuration that are sealed and never shown. */
  secrets: readonly string[];
  /** Fields that say where secrets are sent: when one changes, the secrets must be given again. */
  destinations: readonly string[];
};

/** Runs the steps of a test in order; after a failure the rest is skipped. */
export function createSteps() {
  const steps: TestStep[] = [];
  let failed = false;
  return {
    steps,
    /** Runs one step; what it returns in `message` is shown. */
    async step<T>(name: string, work: () => Promise<{ message: string; value?: T }>): Promise<T | undefined> {
      if (failed) return void steps.push({ name, status: 'skipped', message: 'An earlier step failed.', durationMs: 0 });
      const began = performance.now();
      const add = (status: TestStep['status'], message: string) =>
        steps.push({ name, status, message: message.slice(0, 500), durationMs: Math.round(performance.now() - began) });
      try {
        const { message, value } = await work();
        add('passed', message);
        return value;
      } catch (error) {
        failed = true;
        return void add('failed', error instanceof Error ? error.message : String(error));
      }
    },
  };
}

/** A skew of more than this makes tokens and assertions fail. */
const MAX_SKEW_SECONDS = 60;

/** Compares the clock of a server, by its `Date` header, with ours. */
export function compareClocks(date: string | undefined): { message: string } {
  const theirs = Date.parse(date ?? '');
  if (Number.isNaN(theirs)) return { message: 'The server does not say what time it is.' };
  const skew = Math.round((theirs - Date.now()) / 1_000);
  if (Math.abs(skew) > MAX_SKEW_SECONDS) throw new Error(`The clocks differ by ${skew} s.`);
  return { message: `The clocks differ by ${skew} s.` };
}
