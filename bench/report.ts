/** One line of a report: what was measured, against what, and what it should reach. */
export type Result = {
  measure: string;
  value: string;
  reference: string;
  ratio: string;
  aim: string;
  met: boolean;
};

/** The `q`th part of sorted numbers, 0.5 for the median. */
export function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(q * sorted.length) - 1)] ?? Number.NaN;
}

/** Results as a Markdown table. */
export function table(results: readonly Result[]): string {
  const rows = results.map((r) => [
    r.measure,
    r.value,
    r.reference,
    r.ratio,
    r.aim,
    r.met ? 'yes' : 'no',
  ]);
  const lines = [
    ['Measure', 'Holdfast', 'Reference', 'Ratio', 'Aim', 'Met'],
    Array<string>(6).fill('---'),
    ...rows,
  ];
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

export const ms = (value: number): string => `${value.toFixed(1)} ms`;
export const perSecond = (value: number): string => `${value.toFixed(0)}/s`;
