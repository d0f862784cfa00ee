import { registerHooks } from 'node:module';
import { inspect } from 'node:util';
import { addEventHandler, getState } from 'jest-circus';
import { reportTestFailure } from './failures.ts';

/**
 * Tests run in plain Node processes (jest-light-runner): the modules of the product are loaded once a process, not
 * once a file, and run as Node runs them. That runner makes Jest's functions globals and has no time limits; this
 * file lets tests import the functions, and sets a time limit for every test and hook.
 */
const DEFAULT_TIMEOUT_MS = 60_000;

registerHooks({
  resolve: (specifier, context, nextResolve) =>
    specifier === '@jest/globals'
      ? { url: new URL('./globals.ts', import.meta.url).href, shortCircuit: true }
      : nextResolve(specifier, context),
});

type Body = (...args: unknown[]) => unknown;
type Entry = { fn?: unknown; timeout?: number | null | undefined };

const withinLimit = (body: Body, timeoutMs: number) => async (): Promise<void> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const fail = () => reject(new Error(`It took longer than ${timeoutMs} ms`));
    timer = setTimeout(fail, timeoutMs);
  });
  try {
    await Promise.race([body(), late]);
  } catch (error) {
    await reportTestFailure();
    throw withStack(error);
  } finally {
    clearTimeout(timer);
  }
};

/** The runner prints the stack of an error, and fails without saying why where there is none. */
const withStack = (error: unknown): Error =>
  error instanceof Error && typeof error.stack === 'string'
    ? error
    : new Error(`Thrown without a stack: ${inspect(error)}`);

function limit(entry: Entry | undefined): void {
  if (typeof entry?.fn === 'function')
    entry.fn = withinLimit(entry.fn as Body, entry.timeout ?? DEFAULT_TIMEOUT_MS);
}

addEventHandler(({ name }) => {
  const block = getState().currentDescribeBlock;
  if (name === 'add_test') limit(block.children.at(-1) as Entry | undefined);
  if (name === 'add_hook') limit(block.hooks.at(-1));
});
