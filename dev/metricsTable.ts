import { readFile, writeFile } from 'node:fs/promises';
import { createMetrics } from '../platform/metrics.ts';

const GUIDE = 'docs/operations.md';
const TABLE = /(<!-- metrics -->\n)[^]*(\n<!-- end of metrics -->)/;

/** The table of the metrics of the product, for docs/operations.md. */
export function metricsTable(): string {
  const metrics = createMetrics({ role: 'api', version: '' }).describe();
  const rows = metrics.map(({ name, type, labels, help }) => {
    const labelled = labels.map((label) => `\`${label}\``).join(', ');
    return `| \`${name}\` | ${type} | ${labelled} | ${help} |`;
  });
  return ['| Metric | Type | Labels | Meaning |', '| --- | --- | --- | --- |', ...rows].join('\n');
}

// `node dev/metricsTable.ts` writes the table into the guide; `npm run format` aligns it.
if (import.meta.main) {
  const guide = await readFile(GUIDE, 'utf8');
  await writeFile(GUIDE, guide.replace(TABLE, `$1\n${metricsTable()}\n$2`));
}
