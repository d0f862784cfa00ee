import { Agent, request, type Dispatcher } from 'undici';
import { startServer } from '../server.ts';

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

/** Exports are read to their end. */
const MAX_BODY = 1_000_000_000;

export type TenantApi = ReturnType<typeof createTenantApi>;

/** The API for the administrators of a tenant. */
export function createTenantApi(base: string, tenant: string) {
  const dispatcher = new Agent({ connections: 300, headersTimeout: 120_000, bodyTimeout: 120_000 });

  const call = (
    method: Method,
    path: string,
    body?: object | string,
    headers: Record<string, string> = {},
  ): Promise<Dispatcher.ResponseData> =>
    request(base + path, {
      method,
      dispatcher,
      body: typeof body === 'string' ? body : body === undefined ? null : JSON.stringify(body),
      headers: {
        'content-type': 'application/json',
        'x-service-actor-id': `${tenant}-admin`,
        'x-service-role-ids': 'platform-admin',
        'x-service-tenant-id': tenant,
        ...headers,
      },
    });

  return {
    tenant,

    /** Sends a request that must succeed, and returns its body. */
    async send(...args: Parameters<typeof call>): Promise<Record<string, unknown>> {
      const answer = await call(...args);
      const text = await answer.body.text();
      if (answer.statusCode >= 300)
        throw new Error(`${args[0]} ${args[1]}: ${answer.statusCode} ${text.slice(0, 500)}`);
      return text === '' ? {} : (JSON.parse(text) as Record<string, unknown>);
    },

    /** Sends a request that may be refused. Returns its status. */
    async attempt(...args: Parameters<typeof call>): Promise<number> {
      const answer = await call(...args);
      await answer.body.dump({ limit: MAX_BODY });
      return answer.statusCode;
    },

    /** Opens a response that goes on. Returns the function that closes it, or null if refused. */
    async open(...args: Parameters<typeof call>): Promise<(() => void) | null> {
      const { body, statusCode } = await call(...args);
      body.on('error', () => undefined);
      if (statusCode !== 200) {
        await body.dump();
        return null;
      }
      body.resume();
      return () => void body.destroy();
    },

    close: () => dispatcher.destroy(),
  };
}

export type BenchEndpoint = Awaited<ReturnType<typeof startEndpoint>>;

/** An endpoint that notes when events arrive. Requests to `/hanging` get no response. */
export async function startEndpoint() {
  const arrivals: number[] = [];
  const { base, stop } = await startServer((incoming, response) => {
    incoming.resume();
    if (incoming.url === '/hanging') return;
    arrivals.push(performance.now());
    response.writeHead(204).end();
  });
  return {
    arrivals,
    url: (path: string) => `${base}${path}`,
    stop,
  };
}
