/** A row of the report. `target` is empty if the measure has none; `met` is ignored then. */
export type BenchResult = {
  measure: string;
  value: string;
  reference: string;
  ratio: string;
  target: string;
  met: boolean;
};

/** Returns the `q` quantile by the nearest-rank method; 0.5 is the median. */
export function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(q * sorted.length) - 1)] ?? Number.NaN;
}

export const median = (values: readonly number[]): number => quantile(values, 0.5);

/** Formats results as a Markdown table. */
export function table(results: readonly BenchResult[]): string {
  const rows = results.map((r) => [
    r.measure,
    r.value,
    r.reference,
    r.ratio,
    r.target,
    r.target === '' ? '' : r.met ? 'yes' : 'no',
  ]);
  const lines = [
    ['Measure', 'Holdfast', 'Reference', 'Ratio', 'Target', 'Met'],
    Array<string>(6).fill('---'),
    ...rows,
  ];
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

export const ms = (value: number): string => `${value.toFixed(1)} ms`;
export const perSecond = (value: number): string => `${value.toFixed(0)}/s`;
