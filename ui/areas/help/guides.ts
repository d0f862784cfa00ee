import type { Guide } from '../../guides/guide.ts';
import { ownValue } from '../../parts/ownValue.ts';

/** The files of the guides. Each is loaded when it is opened. */
const FILES = import.meta.glob<{ default: Guide }>('../../../docs/*.md');

/** The guides by what they are for. One that is in no group is in the last. */
const GROUPS = [
  {
    title: 'Use it',
    names: ['console', 'inventory', 'approvals', 'jobs', 'schedules', 'webhooks', 'glossary'],
  },
  {
    title: 'Automate',
    names: [
      'api',
      'job-types',
      'job-type-modules',
      'secrets',
      'ansible',
      'python-worker',
      'clients',
    ],
  },
  {
    title: 'Access and history',
    names: ['access', 'tokens', 'quotas', 'retention', 'legal-holds', 'threat-model'],
  },
  {
    title: 'Run it',
    names: [
      'deployment',
      'configuration',
      'operations',
      'upgrading',
      'backups',
      'archive-format',
      'architecture',
      'benchmarks',
    ],
  },
] as const;

const nameOf = (file: string): string => file.replace(/^.*\/(.*)\.md$/, '$1');

const NAMES: readonly string[] = Object.keys(FILES).map(nameOf);

export type GuideGroup = { title: string; names: readonly string[] };

export function guideGroups(): GuideGroup[] {
  const grouped = new Set<string>(GROUPS.flatMap(({ names }) => names));
  const others = NAMES.filter((name) => !grouped.has(name)).sort();
  return [...GROUPS, { title: 'More', names: others }]
    .map(({ title, names }) => ({ title, names: names.filter((name) => NAMES.includes(name)) }))
    .filter(({ names }) => names.length > 0);
}

const ACRONYMS: Readonly<Record<string, string>> = { api: 'API', ansible: 'Ansible' };

/** What a guide is called in lists, before it is loaded. */
export function titleOfGuide(name: string): string {
  const words = ownValue(ACRONYMS, name) ?? name.replaceAll('-', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** A guide; null if there is none. It changes with the console only. */
export const guideQuery = (name: string) => ({
  queryKey: ['help', name],
  queryFn: async (): Promise<Guide | null> => {
    const file = Object.keys(FILES).find((each) => nameOf(each) === name);
    return file === undefined ? null : ((await FILES[file]?.())?.default ?? null);
  },
  staleTime: Infinity,
});
