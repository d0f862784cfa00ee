import { request } from 'undici';

/** A response of the API as a test sees it. `T` is the type of the body, from the schema of the route. */
export type TestResponse<T = unknown> = { status: number; headers: Headers; body: T };

/** A request in flight. `expect(201)` resolves to the body, or fails with what the server said instead. */
export type TestRequest<T> = Promise<TestResponse<T>> & { expect(status: number): Promise<T> };

/** The body of an error response (RFC 9457). */
export type ProblemBody = {
  status: number;
  title: string;
  code: string;
  detail?: string;
  errors?: { in: string; pointer: string; code: string; message: string }[];
  [extension: string]: unknown;
};

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

/** A client of the API at `base`: with gateway headers, with an access token, or anonymous (token null). */
export function createClient(base: string, caller: Identity = {}) {
  const identity = headersOf(caller);

  async function exchange<T>(
    method: string,
    path: string,
    body: unknown,
    headers: Record<string, string>,
  ): Promise<TestResponse<T>> {
    // A third of the processor time of `fetch`, and redirects are not followed.
    const response = await request(base + path, {
      method: method as 'GET',
      headers: {
        ...identity,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.body.text();
    const received = new Headers();
    for (const [name, values] of Object.entries(response.headers))
      for (const value of [values ?? []].flat()) received.append(name, value);
    const isJson = /[/+]json/.test(received.get('content-type') ?? '');
    return {
      status: response.statusCode,
      headers: received,
      body: (isJson ? JSON.parse(text) : text) as T,
    };
  }

  function send<T = unknown>(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): TestRequest<T> {
    const response = exchange<T>(method, path, body, headers);
    return Object.assign(response, {
      async expect(status: number): Promise<T> {
        const { status: actual, body: content } = await response;
        if (actual === status) return content;
        throw new Error(
          `${method} ${path} was answered with ${actual} instead of ${status}: ${JSON.stringify(content)}`,
        );
      },
    });
  }

  return {
    base,
    identity,
    send,
    get: <T = unknown>(path: string, headers?: Record<string, string>) =>
      send<T>('GET', path, undefined, headers),
    put: <T = unknown>(path: string, body?: unknown, headers?: Record<string, string>) =>
      send<T>('PUT', path, body, headers),
    delete: <T = unknown>(path: string, headers?: Record<string, string>) =>
      send<T>('DELETE', path, undefined, headers),
    post: <T = unknown>(path: string, body?: unknown, headers?: Record<string, string>) =>
      send<T>('POST', path, body, headers),
    /** The same server with another identity. */
    as: (other: Identity) => createClient(base, other),
  };
}
