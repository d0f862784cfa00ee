import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { createMetrics } from '../../../platform/metrics.ts';
import { metricsTable } from '../../../dev/metricsTable.ts';

const ROOT = path.resolve(import.meta.dirname, '../../..');
const read = (file: string) => readFile(path.join(ROOT, file), 'utf8');

type Alert = {
  alert: string;
  expr: string;
  labels: { severity: string };
  annotations: { summary: string; description: string; runbook_url: string };
};
type Panel = { id: number; title: string; targets?: { expr: string }[] };

async function readAlerts(): Promise<Alert[]> {
  const { groups } = parse(await read('ops/prometheus/alerts.yaml')) as {
    groups: { rules: Alert[] }[];
  };
  return groups.flatMap(({ rules }) => rules);
}

const readPanels = async (): Promise<Panel[]> =>
  (JSON.parse(await read('ops/grafana/holdfast.json')) as { panels: Panel[] }).panels;

/** The names that an expression reads; those of the SDK are checked with a real process. */
const metricsIn = (expr: string): string[] => expr.match(/\b(holdfast|nodejs|process)_\w+/g) ?? [];

/** The names of all series, of histograms each of their three. */
async function knownNames(): Promise<Set<string>> {
  const text = await createMetrics({ role: 'api', version: '1' }).text();
  const types = text.matchAll(/^# TYPE (\w+) (\w+)$/gm);
  return new Set(
    [...types].flatMap(([, name = '', type]) =>
      type === 'histogram' ? ['_bucket', '_sum', '_count'].map((part) => name + part) : [name],
    ),
  );
}

test('every metric of the alerts and of the dashboard exists', async () => {
  const known = await knownNames();
  const alerts = await readAlerts();
  const targets = (await readPanels()).flatMap((panel) => panel.targets ?? []);
  expect(alerts.length).toBeGreaterThan(20);
  expect(targets.length).toBeGreaterThan(30);
  const used = [...alerts, ...targets].flatMap(({ expr }) => metricsIn(expr));
  expect(used.filter((name) => !known.has(name))).toEqual([]);
});

test('every alert has a runbook, and every runbook an alert', async () => {
  const alerts = await readAlerts();
  const pages = (await readdir(path.join(ROOT, 'ops/runbooks'))).filter((f) => f !== 'README.md');
  expect(alerts.map(({ annotations }) => annotations.runbook_url).sort()).toEqual(
    pages.map((page) => `ops/runbooks/${page}`).sort(),
  );
  const index = await read('ops/runbooks/README.md');
  for (const { alert, labels, annotations } of alerts) {
    const page = await read(annotations.runbook_url);
    expect(page).toContain(`# ${alert}: `);
    expect(page).toContain(`Severity: ${labels.severity}.`);
    for (const part of ['## Check', '## Fix']) expect(page).toContain(part);
    expect(index).toContain(`[${alert}](${alert}.md)`);
  }
});

test('panels of the dashboard have ids of their own', async () => {
  const ids = (await readPanels()).map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
});

test('the guide lists every metric of the product', async () => {
  const cells = (text: string) =>
    text
      .split('\n')
      .filter((line) => line.startsWith('| `holdfast_'))
      .map((line) => line.split('|').map((cell) => cell.trim()));
  expect(cells(await read('docs/operations.md'))).toEqual(cells(metricsTable()));
});
