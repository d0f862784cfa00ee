import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { AggregatedResult, Reporter } from '@jest/reporters';
import { DURATIONS_FILE, ROOT } from './longestFirst.ts';

const SHOWN = 10;

/**
 * Prints the slowest files at the end, with the time before their first test: mostly loading modules and `beforeAll`.
 * With RECORD_DURATIONS=1 it also writes what the sequencer sorts by.
 */
export default class DurationReporter implements Pick<Reporter, 'onRunComplete'> {
  async onRunComplete(_contexts: unknown, { testResults }: AggregatedResult): Promise<void> {
    const files = testResults
      .filter(({ skipped }) => !skipped)
      .map(({ testFilePath, perfStats, testResults: tests }) => ({
        file: path.relative(ROOT, testFilePath),
        seconds: perfStats.runtime / 1_000,
        setupSeconds:
          (perfStats.runtime - tests.reduce((sum, { duration }) => sum + (duration ?? 0), 0)) /
          1_000,
      }))
      .sort((a, b) => b.seconds - a.seconds);
    if (files.length > 1) {
      const rows = files
        .slice(0, SHOWN)
        .map(
          ({ file, seconds, setupSeconds }) =>
            `${seconds.toFixed(1).padStart(7)} s ${setupSeconds.toFixed(1).padStart(7)} s  ${file}`,
        );
      process.stderr.write(`\nSlowest files (total, outside tests):\n${rows.join('\n')}\n`);
    }
    if (process.env.RECORD_DURATIONS !== '1') return;
    const durations = Object.fromEntries(
      files.map(({ file, seconds }) => [file, Math.round(seconds)] as const).sort(),
    );
    await writeFile(DURATIONS_FILE, `${JSON.stringify(durations, null, 2)}\n`);
  }
}
