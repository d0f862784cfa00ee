/** What an answer of the API looks like to a test. */
export type TestAnswer = { status: number; headers: Headers; body: any };

export type TestClient = ReturnType<typeof createClient>;

type Identity = { actor?: string; roles?: string; tenant?: string };

/** Talks to the API at `base` as somebody, through the gateway headers. */
export function createClient(base: string, { actor = 'alice', roles = 'operator', tenant }: Identity = {}) {
  const identity: Record<string, string> = {
    'x-service-actor-id': actor, 'x-service-role-ids': roles, ...(tenant !== undefined && { 'x-service-tenant-id': tenant }),
  };

  async function send(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<TestAnswer> {
    const response = await fetch(base + path, {
      method,
      headers: { ...identity, ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = (response.headers.get('content-type') ?? '').includes('json');
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
  }

  return {
    base,
    identity,
    send,
    get: (path: string, headers?: Record<string, string>) => send('GET', path, undefined, headers),
    post: (path: string, body?: unknown, headers?: Record<string, string>) => send('POST', path, body, headers),
    /** The same server as somebody else. */
    as: (other: Identity) => createClient(base, other),
  };
}
