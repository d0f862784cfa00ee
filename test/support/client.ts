/** What an answer of the API looks like to a test. */
export type TestAnswer = { status: number; headers: Headers; body: any };

export type TestClient = ReturnType<typeof createClient>;

type Identity = { actor?: string; roles?: string; tenant?: string } | { token: string | null };

function headersOf(identity: Identity): Record<string, string> {
  if ('token' in identity)
    return identity.token === null ? {} : { authorization: `Bearer ${identity.token}` };
  const { actor = 'alice', roles = 'operator', tenant } = identity;
  return {
    'x-service-actor-id': actor,
    'x-service-role-ids': roles,
    ...(tenant !== undefined && { 'x-service-tenant-id': tenant }),
  };
}

/** Talks to the API at `base` as somebody: through gateway headers, with an access token, or as nobody (token null). */
export function createClient(base: string, who: Identity = {}) {
  const identity = headersOf(who);

  async function send(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<TestAnswer> {
    const response = await fetch(base + path, {
      method,
      redirect: 'manual',
      headers: {
        ...identity,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = /[/+]json/.test(response.headers.get('content-type') ?? '');
    return {
      status: response.status,
      headers: response.headers,
      body: isJson ? JSON.parse(text) : text,
    };
  }

  return {
    base,
    identity,
    send,
    get: (path: string, headers?: Record<string, string>) => send('GET', path, undefined, headers),
    put: (path: string, body?: unknown, headers?: Record<string, string>) =>
      send('PUT', path, body, headers),
    delete: (path: string, headers?: Record<string, string>) =>
      send('DELETE', path, undefined, headers),
    post: (path: string, body?: unknown, headers?: Record<string, string>) =>
      send('POST', path, body, headers),
    /** The same server as somebody else. */
    as: (other: Identity) => createClient(base, other),
  };
}
