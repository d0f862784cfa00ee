import { Agent, request } from 'undici';

/** Sends a request to the inventory; fails unless it succeeds. */
export type Api = (
  method: 'GET' | 'POST',
  path: string,
  body?: unknown,
  headers?: Record<string, string>,
) => Promise<{ durationMs: number; body: Record<string, unknown> }>;

/** Opens connections to the API at a port of this machine. A path with `/` first is not of the inventory. */
export function openApi(
  port: string,
  connections: number,
): { api: Api; close: () => Promise<void> } {
  const agent = new Agent({ connections, headersTimeout: 120_000, bodyTimeout: 120_000 });
  const api: Api = async (method, path, body, headers = {}) => {
    const startedAt = performance.now();
    const fullPath = path.startsWith('/') ? path : `/api/inventory/${path}`;
    const response = await request(`http://127.0.0.1:${port}${fullPath}`, {
      method,
      dispatcher: agent,
      body: typeof body === 'string' ? body : body === undefined ? null : JSON.stringify(body),
      headers: {
        'content-type': 'application/json',
        'x-service-actor-id': 'bench',
        'x-service-role-ids': 'platform-admin',
        ...headers,
      },
    });
    const json = (await response.body.json()) as Record<string, unknown>;
    if (response.statusCode >= 300)
      throw new Error(`${response.statusCode} ${JSON.stringify(json).slice(0, 500)}`);
    return { durationMs: performance.now() - startedAt, body: json };
  };
  return { api, close: () => agent.close() };
}

/** Creates a VRF. Returns its id. */
export const vrf = async (api: Api, name: string): Promise<string> =>
  String((await api('POST', 'vrfs', { name })).body.id);
