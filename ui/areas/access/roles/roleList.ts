import type { Filter, ListSearch } from '../../../parts/list/search.ts';

// The fields that are needed, without the types of the API: its client needs a browser.
type Role = {
  id: string;
  name: string;
  builtIn: boolean;
  permissions: readonly string[];
  jobTypes: readonly string[];
};

/** The filters of the list; `permissions` are all that exist. */
export const roleFilters = (permissions: readonly string[]) =>
  [
    {
      id: 'kind',
      label: 'Kind',
      kind: 'choice',
      choices: [
        { value: 'builtIn', label: 'Built in' },
        { value: 'own', label: 'Own' },
      ],
      inline: true,
    },
    { id: 'text', label: 'Name', kind: 'text', example: 'net' },
    {
      id: 'has',
      label: 'Has the permission',
      kind: 'choice',
      choices: permissions.map((value) => ({ value, label: value })),
    },
    { id: 'jobTypes', label: 'Names job types', kind: 'flag', on: true },
  ] as const satisfies readonly Filter[];

const valuesOf = (text: string | undefined): string[] =>
  text === undefined || text === '' ? [] : text.split(',');

/** The roles that pass the filters of an address, in the order of the service. */
export function listedRoles<R extends Role>(roles: readonly R[], search: ListSearch): R[] {
  const text = (search.text ?? '').trim().toLowerCase();
  const kinds = valuesOf(search.kind);
  const wanted = valuesOf(search.has);
  return roles
    .filter(({ id, name }) => `${name} ${id}`.toLowerCase().includes(text))
    .filter(({ builtIn }) => kinds.length === 0 || kinds.includes(builtIn ? 'builtIn' : 'own'))
    .filter(({ permissions }) => wanted.every((permission) => permissions.includes(permission)))
    .filter(({ jobTypes }) => search.jobTypes === undefined || jobTypes.length > 0);
}
