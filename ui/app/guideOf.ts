import { ownValue } from '../parts/ownValue.ts';

/** The guides of the pages, by the first part of their path. Others are explained by that of the console. */
const GUIDES: Readonly<Record<string, string>> = {
  access: 'access',
  account: 'tokens',
  approvals: 'approvals',
  audit: 'access',
  backups: 'backups',
  events: 'webhooks',
  inventory: 'inventory',
  'job-types': 'job-types',
  jobs: 'jobs',
  runners: 'job-types',
  schedules: 'schedules',
  secrets: 'secrets',
  webhooks: 'webhooks',
};

/** The parts of guides for pages that are about one part of it. */
const PARTS: readonly (readonly [start: string, part: string])[] = [
  ['/inventory/imports', 'import-and-export'],
  ['/inventory/prefixes/space', 'address-spaces'],
];

/** The guide of a page, and the part of it. */
export function guideOf(path: string): { guide: string; hash: string } {
  const guide = ownValue(GUIDES, path.split('/', 2)[1] ?? '') ?? 'console';
  const hash = PARTS.find(([start]) => path.startsWith(start))?.[1] ?? '';
  return { guide, hash };
}
