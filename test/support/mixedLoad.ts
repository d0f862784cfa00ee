import type { TestClient, TestResponse } from './client.ts';

type Operation = { name: string; send(n: number): Promise<TestResponse> };

/** What one request got. `broken`: a response that ended early, after its status. */
export type LoadResult = {
  name: string;
  status: number | 'broken';
  code: string | undefined;
  retryAfter: string | null;
};

const OPERATOR = { actor: 'alice', roles: 'platform-admin', tenant: 'red' };

/** Reads, writes in one statement and in several, transactions that read, and streams. */
function operationsOf(client: TestClient, run: string): Operation[] {
  const site = (n: number) => ({ name: `${run}-${n}` });
  return [
    {
      name: 'job',
      send: (n) => client.post('/api/jobs', { type: 'core.echo', payload: { n } }),
    },
    {
      name: 'job with a wait',
      send: () =>
        client.post('/api/jobs', { type: 'core.echo', payload: {} }, { prefer: 'wait=1' }),
    },
    { name: 'site', send: (n) => client.post('/api/inventory/sites', site(n)) },
    {
      name: 'bulk',
      send: (n) =>
        client.post('/api/inventory/bulk', {
          mode: 'all',
          mutations: [1, 2, 3].map((part) => ({
            resource: 'sites',
            operation: 'create',
            record: { name: `${run}-bulk-${n}-${part}` },
          })),
        }),
    },
    {
      name: 'validation',
      send: (n) =>
        client.post('/api/validation/inventory', {
          resource: 'sites',
          operation: 'create',
          record: { name: `${run}-valid-${n}` },
        }),
    },
    { name: 'list', send: () => client.get('/api/jobs?count=true&limit=20') },
    { name: 'export', send: () => client.get('/api/inventory/sites/export?format=ndjson') },
    {
      name: 'webhook',
      send: (n) =>
        client.post('/api/webhooks', {
          endpointUrl: `http://127.0.0.1:9/${run}/${n}`,
          eventTypes: ['webhook.deleted'],
          enabled: false,
        }),
    },
    { name: 'audit', send: () => client.get('/api/audit?limit=20') },
  ];
}

/** Sends requests of all kinds, some of each at a time, until it is stopped. */
export function startMixedLoad(target: TestClient, run: string, atATime = 2) {
  const operations = operationsOf(target.as(OPERATOR), run);
  const results: LoadResult[] = [];
  let isStopped = false;
  let sent = 0;

  async function repeat({ name, send }: Operation): Promise<void> {
    while (!isStopped) {
      const result = await send((sent += 1)).then(
        ({ status, headers, body }) => ({
          name,
          status,
          code: (body as { code?: string } | undefined)?.code,
          retryAfter: headers.get('retry-after'),
        }),
        () => ({ name, status: 'broken' as const, code: undefined, retryAfter: null }),
      );
      results.push(result);
    }
  }

  const ended = Promise.all(
    operations.flatMap((operation) => Array.from({ length: atATime }, () => repeat(operation))),
  );
  return {
    names: operations.map(({ name }) => name),
    results,
    async stop(): Promise<void> {
      isStopped = true;
      await ended;
    },
  };
}
