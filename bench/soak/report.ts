import { median, ms, quantile, type BenchResult } from '../report.ts';
import { GROUPS, type Group } from './operations.ts';
import { SAMPLED, type Sample } from './samples.ts';

/** What one part of the time had. Durations in milliseconds, memory and disk in MiB. */
export type Window = {
  operations: number;
  failures: number;
  durations: Record<Group, number[]>;
  /** From the commit of an event to its arrival. */
  arrivals: number[];
  samples: Sample[];
  /** At its end. */
  disk: Record<'wal' | 'records' | 'temporal', number>;
};

/** The last window may have this many times what the second has; the first one is for warming up. */
const MAX_GROWTH = 1.2;

const p99 = (values: readonly number[]) => quantile(values, 0.99);

type Row = { name: string; of(window: Window): number; text(value: number): string };

const whole = (value: number) => value.toFixed(0);
const mib = (value: number) => `${value.toFixed(0)} MiB`;

/** Rows that should stay as they are. */
const FLAT: readonly Row[] = [
  ...[...GROUPS, 'event to its endpoint' as const].flatMap((name) => {
    const values = (window: Window) =>
      name === 'event to its endpoint' ? window.arrivals : window.durations[name];
    return [
      { name: `${name}, p50`, of: (window: Window) => median(values(window)), text: ms },
      { name: `${name}, p99`, of: (window: Window) => p99(values(window)), text: ms },
    ];
  }),
  ...SAMPLED.map((name) => ({
    name,
    of: ({ samples }: Window) => median(samples.map((sample) => sample[name])),
    text: name.startsWith('memory') ? mib : name === 'a fixed computation' ? ms : whole,
  })),
  {
    // A backend that ends takes its share along: of thousands of operations that is little.
    name: 'processor time of all servers for an operation',
    of: ({ samples, operations }) =>
      ((samples.at(-1)?.cpuMs ?? Number.NaN) - (samples[0]?.cpuMs ?? Number.NaN)) / operations,
    text: ms,
  },
  { name: 'write-ahead log', of: ({ disk }) => disk.wal, text: mib },
];

/** Rows of what there is more of with every operation. */
const GROWING: readonly Row[] = [
  { name: 'operations', of: ({ operations }) => operations, text: whole },
  { name: 'failures', of: ({ failures }) => failures, text: whole },
  { name: 'records and indexes', of: ({ disk }) => disk.records, text: mib },
  { name: 'file of Temporal', of: ({ disk }) => disk.temporal, text: mib },
];

/** A Markdown table with a column for each window. */
export function windowsTable(windows: readonly Window[], windowMinutes: number): string {
  const lines = [
    ['Minute', ...windows.map((_, n) => `to ${Math.round((n + 1) * windowMinutes)}`)],
    Array<string>(windows.length + 1).fill('---'),
    ...[...GROWING, ...FLAT].map(({ name, of, text }) => [
      name,
      ...windows.map((window) => text(of(window))),
    ]),
  ];
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

/** The last window compared with the second. */
export const soakResults = (windows: readonly Window[], minutes: number): BenchResult[] =>
  FLAT.map(({ name, of, text }) => {
    const [early, late] = [windows[1], windows.at(-1)];
    if (!early || !late) throw new Error('A soak has at least two windows');
    const growth = of(late) / of(early);
    return {
      measure: `${minutes} minutes of mixed load at half the capacity, last sixth: ${name}`,
      value: text(of(late)),
      reference: `${text(of(early))} in the second sixth`,
      ratio: growth.toFixed(2),
      target: `≤ ${MAX_GROWTH}`,
      met: growth <= MAX_GROWTH,
    };
  });
