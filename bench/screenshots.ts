import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Page } from 'playwright-core';
import { seedDemo, type Demo } from './console/demo.ts';
import { startInstallation, type Installation } from './console/installation.ts';
import { ROOT, startBenchEnvironment } from './fixture.ts';

/**
 * `npm run screenshots [name…]`: starts an installation with demo data, and makes the pictures of the guides in
 * `docs/images/`, each for light and for dark.
 */
const FOLDER = path.join(ROOT, 'docs', 'images');
const SIZE = { width: 1_280, height: 800 };
const QUALITY = 72;
const MAX_BYTES = 150_000;

type Picture = {
  name: string;
  user: keyof Demo['users'];
  path: (demo: Demo) => string;
  /** Resolves when the page shows what the picture is about. */
  ready: (page: Page) => Promise<void>;
};

const PICTURES: readonly Picture[] = [
  {
    name: 'home',
    user: 'approver',
    path: () => '/',
    ready: async (page) => {
      await page.getByText('Deletes device fra1-d7').waitFor();
      await page.getByRole('region', { name: 'Broken now' }).waitFor();
    },
  },
  {
    name: 'approval',
    user: 'approver',
    path: ({ approvalId }) => `/approvals/${approvalId}`,
    ready: (page) =>
      page
        .getByRole('button', { name: /Approve/ })
        .first()
        .waitFor(),
  },
  {
    name: 'job',
    user: 'operator',
    path: ({ jobId }) => `/jobs/${jobId}`,
    ready: (page) => page.getByText('Attempt 3 started').first().waitFor(),
  },
  {
    name: 'schedules',
    user: 'operator',
    path: () => '/schedules',
    ready: (page) => page.getByRole('link', { name: 'Address report' }).waitFor(),
  },
  {
    name: 'change',
    user: 'operator',
    path: () => '/inventory/prefixes',
    ready: async (page) => {
      await page.getByRole('grid').getByRole('link').first().click();
      await page.getByRole('button', { name: 'Edit' }).click();
      await page.getByLabel('Status').selectOption({ label: 'Reserved' });
      await page.getByRole('region', { name: 'What changes' }).getByText('reserved').waitFor();
    },
  },
  {
    name: 'space',
    user: 'operator',
    path: ({ prefixId }) => `/inventory/prefixes/space?map=${prefixId}&at=10.1.0.0%2F16`,
    ready: async (page) => {
      await page.getByRole('application', { name: /^Map of/ }).waitFor();
      await page.getByText('1,250').waitFor();
      // The map is drawn in the next frame.
      await page.evaluate(
        'new Promise(requestAnimationFrame).then(() => new Promise(requestAnimationFrame))',
      );
    },
  },
  {
    name: 'rack',
    user: 'operator',
    path: ({ rackId }) => `/inventory/racks/${rackId}`,
    ready: (page) =>
      page
        .getByText(/^ams1-d/)
        .first()
        .waitFor(),
  },
  {
    name: 'role',
    user: 'approver',
    path: () => '/access/compare-roles?roles=viewer,operator,approver',
    ready: (page) => page.getByRole('table').first().waitFor(),
  },
  {
    name: 'restore',
    user: 'administrator',
    path: ({ backupId }) => `/backups/${backupId}/restore?sections=inventory`,
    ready: async (page) => {
      await page.getByRole('button', { name: 'Compare with the present records' }).click();
      await page.getByText('ber1').first().waitFor();
    },
  },
  {
    name: 'search',
    user: 'operator',
    path: () => '/search?q=10.1.4.17',
    ready: (page) => page.getByText('10.1.4.17').first().waitFor(),
  },
  {
    name: 'account',
    user: 'operator',
    path: () => '/account',
    ready: (page) => page.getByText('pipeline').first().waitFor(),
  },
];

const names = process.argv.slice(2);
const wanted = PICTURES.filter(({ name }) => names.length === 0 || names.includes(name));

const environment = await startBenchEnvironment();
const archives = await mkdtemp(path.join(tmpdir(), 'holdfast-pictures-'));
try {
  const installation = await startInstallation(environment, { HOLDFAST_BACKUP_DIR: archives });
  try {
    const demo = await seedDemo(installation);
    await mkdir(FOLDER, { recursive: true });
    for (const colorScheme of ['light', 'dark'] as const)
      for (const picture of wanted) await take(installation, demo, picture, colorScheme);
  } finally {
    await installation.stop();
  }
} finally {
  await environment.stop();
  await rm(archives, { recursive: true });
}
process.exit(0);

async function take(
  installation: Installation,
  demo: Demo,
  { name, user, path: pathOf, ready }: Picture,
  colorScheme: 'light' | 'dark',
): Promise<void> {
  const page = await installation.open(demo.users[user], { viewport: SIZE, colorScheme });
  await page.goto(pathOf(demo));
  await ready(page);
  await page.locator('[aria-busy=true]').first().waitFor({ state: 'detached' });
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send('Page.captureScreenshot', {
    format: 'webp',
    quality: QUALITY,
    optimizeForSpeed: false,
  });
  const content = Buffer.from(data, 'base64');
  if (content.length > MAX_BYTES)
    throw new Error(`${name} has ${content.length} bytes; ${MAX_BYTES} are the most.`);
  const file = path.join(FOLDER, `${name}${colorScheme === 'dark' ? '-dark' : ''}.webp`);
  await writeFile(file, content);
  process.stderr.write(`${path.relative(ROOT, file)}: ${Math.round(content.length / 1_000)} KB\n`);
  await page.context().close();
}
