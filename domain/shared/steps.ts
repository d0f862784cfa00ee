/** A computation that stops after each of its steps, so that others can run. */
export type Steps<T> = Generator<undefined, T, undefined>;

/** Takes all steps of a computation without a pause, and returns its result. */
export function takeAll<T>(steps: Steps<T>): T {
  let step = steps.next();
  while (!step.done) step = steps.next();
  return step.value;
}
