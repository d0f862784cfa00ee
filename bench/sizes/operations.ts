import type pg from 'pg';
import type { Api } from '../inventory/api.ts';
import type { Containers } from './fill.ts';

/** A request that is measured. `prepare` runs before each, and is not. */
export type Operation = {
  name: string;
  prepare?: () => Promise<unknown>;
  run(size: number, n: number): Promise<unknown>;
};

/** The operations whose cost should not grow with the number of records. */
export function createOperations(api: Api, client: pg.Client, ids: Containers): Operation[] {
  let created = 0;
  /** A /24 that no request has named yet. */
  const network = () => `172.${16 + (created >> 8)}.${created++ & 255}.0/24`;
  const address = () => `192.${created >> 8}.${created++ & 255}.7`;
  const get = (path: string) => () => api('GET', path);
  const allocateAddress = () =>
    api('POST', `prefixes/${ids.addresses}/allocate`, { kind: 'address' });
  const forgetHints = () => client.query('DELETE FROM free_hints');
  return [
    { name: 'create an address', run: () => api('POST', 'ip-addresses', { address: address() }) },
    { name: 'create a prefix', run: () => api('POST', 'prefixes', { cidr: network() }) },
    { name: 'list addresses, newest first', run: get('ip-addresses') },
    { name: 'list addresses by address', run: get('ip-addresses?sort=address') },
    { name: 'filter addresses by status', run: get('ip-addresses?status=reserved') },
    {
      name: 'search text that one address has',
      run: (size) => api('GET', `ip-addresses?q=host${size - 17}.`),
    },
    { name: 'search text that all addresses have', run: get('ip-addresses?q=example.net') },
    {
      name: 'search all kinds by a text that one address has',
      run: (size) => api('GET', `/api/search?q=host${size - 17}.`),
    },
    {
      name: 'search all kinds by an address',
      run: get('/api/search?q=2001:db8:1:1::9'),
    },
    {
      name: 'search all kinds by the beginning of an address',
      run: get('/api/search?q=10.0.'),
    },
    {
      name: 'list 200 addresses with labels and people',
      run: get('ip-addresses?limit=200&include=labels,people'),
    },
    {
      name: 'list 200 prefixes of 250 children each with their usage',
      run: get('prefixes?limit=200&include=usage'),
    },
    {
      name: 'prefixes that contain an address',
      run: get('prefixes?contains=2001:db8:1:1::9'),
    },
    { name: 'next free address', run: allocateAddress },
    { name: 'next free address, the first time', prepare: forgetHints, run: allocateAddress },
    {
      name: 'next free /48 among the used, the first time',
      prepare: forgetHints,
      run: () =>
        api('POST', `prefixes/${ids.networks}/allocate`, { kind: 'prefix', prefixLength: 48 }),
    },
    {
      name: 'validate a prefix',
      run: () =>
        api('POST', '/api/validation/inventory', {
          resource: 'prefixes',
          operation: 'create',
          record: { cidr: '172.31.0.0/24' },
        }),
    },
    {
      name: 'create a job',
      run: () => api('POST', '/api/jobs', { type: 'core.echo', payload: {} }),
    },
    { name: 'list jobs', run: get('/api/jobs') },
    {
      name: 'create an approval request',
      run: () =>
        api('POST', '/api/workflows', {
          type: 'change',
          title: 'Bench',
          payload: {},
          assignedUserIds: ['reviewer'],
          assignedRoleIds: [],
        }),
    },
    { name: 'list approval requests, with their counts', run: get('/api/workflows') },
  ];
}
