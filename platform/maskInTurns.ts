import { maskingSteps } from '../domain/shared/credentials.ts';
import { computeFor } from './connectionUser.ts';
import { createPause } from './turns.ts';

/** `maskCredentials` for what callers have chosen, which may be long: others do not wait for it. */
export async function maskInTurns<T>(value: T): Promise<T> {
  const pause = createPause({ isPatient: true });
  const steps = maskingSteps(value);
  for (;;) {
    const step = computeFor(() => steps.next());
    if (step.done) return step.value;
    await pause();
  }
}
