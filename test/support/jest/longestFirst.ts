import { readFileSync } from 'node:fs';
import path from 'node:path';
import testSequencer from '@jest/test-sequencer';

export const ROOT = path.resolve(import.meta.dirname, '../../..');

/** Seconds by file, written by the duration reporter. A file that is missing counts as an average one. */
export const DURATIONS_FILE = path.join(ROOT, 'test/durations.json');

const DEFAULT_SECONDS = 10;

// The package has an ES module beside the CommonJS one that its types describe.
const TestSequencer = testSequencer as unknown as (typeof testSequencer)['default'];
type Tests = Parameters<InstanceType<typeof TestSequencer>['sort']>[0];

/** Starts the longest files first, so that no worker is left with one of them at the end. */
export default class LongestFirst extends TestSequencer {
  override sort(tests: Tests): Tests {
    const durations = JSON.parse(readFileSync(DURATIONS_FILE, 'utf8')) as Record<string, number>;
    const secondsOf = (test: Tests[number]) =>
      durations[path.relative(ROOT, test.path)] ?? DEFAULT_SECONDS;
    return [...tests].sort((a, b) => secondsOf(b) - secondsOf(a));
  }
}
