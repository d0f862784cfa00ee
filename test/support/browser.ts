/** A response, as in the developer tools of a browser. */
export type BrowserResponse = { url: string; status: number; headers: Headers; text: string };

type Cookie = { value: string; path: string; sameSite: string };

/**
 * The parts of a browser that signing in depends on: cookies by host and path, `SameSite` for forms
 * that come from elsewhere, redirects, forms that send themselves.
 */
export function createBrowser() {
  const jars = new Map<string, Map<string, Cookie>>();
  const jarOf = (host: string) => {
    const jar = jars.get(host) ?? new Map<string, Cookie>();
    jars.set(host, jar);
    return jar;
  };

  function storeCookies(url: URL, headers: Headers): void {
    for (const line of headers.getSetCookie()) {
      const [pair = '', ...attributes] = line.split(';').map((part) => part.trim());
      const attribute = (name: string) =>
        attributes.find((a) => a.toLowerCase().startsWith(`${name}=`))?.slice(name.length + 1);
      const [name = '', ...value] = pair.split('=');
      const isExpired =
        attribute('max-age') === '0' ||
        new Date(attribute('expires') ?? '9999').getTime() < Date.now();
      if (isExpired) jarOf(url.host).delete(name);
      else
        jarOf(url.host).set(name, {
          value: value.join('='),
          path: attribute('path') ?? '/',
          sameSite: (attribute('samesite') ?? 'lax').toLowerCase(),
        });
    }
  }

  /** `from` is the URL of the page that sends the request. */
  async function send(
    target: string,
    { method = 'GET', headers = {}, body = '', from = '' } = {},
  ): Promise<BrowserResponse> {
    const url = new URL(target);
    const sameSite = from === '' || new URL(from).host === url.host;
    const cookies = [...jarOf(url.host)].filter(
      ([, { path, sameSite: rule }]) =>
        url.pathname.startsWith(path) &&
        (sameSite || rule === 'none' || (rule === 'lax' && method === 'GET')),
    );
    const response = await fetch(url, {
      method,
      redirect: 'manual',
      ...(body !== '' && { body }),
      headers: {
        accept: 'text/html',
        ...(method === 'POST' && { origin: from === '' ? url.origin : new URL(from).origin }),
        ...headers,
        ...(cookies.length > 0 && {
          cookie: cookies.map(([name, { value }]) => `${name}=${value}`).join('; '),
        }),
      },
    });
    storeCookies(url, response.headers);
    return {
      url: target,
      status: response.status,
      headers: response.headers,
      text: await response.text(),
    };
  }

  return {
    send,
    post: (url: string, json: object) =>
      send(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json' },
        body: JSON.stringify(json),
      }),

    /** Follows redirects to a page, or to the first URL for which `stop` returns true. */
    async follow(
      start: string,
      { from = '', stop = (_url: string): boolean => false } = {},
    ): Promise<BrowserResponse[]> {
      const responses: BrowserResponse[] = [];
      for (
        let next: string | undefined = start, page = from;
        next !== undefined && responses.length < 20;
      ) {
        if (stop(next))
          return [...responses, { url: next, status: 0, headers: new Headers(), text: '' }];
        const response: BrowserResponse = await send(next, { from: page });
        responses.push(response);
        const location = response.headers.get('location');
        // A chain of redirects that started on another site counts as cross-site to its end.
        page =
          page === '' || new URL(page).host !== new URL(next).host
            ? page === ''
              ? next
              : page
            : page;
        next = location === null ? undefined : new URL(location, next).href;
      }
      return responses;
    },

    /** Sends the form of a page, as its script would. */
    submit(page: BrowserResponse, change: Record<string, string> = {}): Promise<BrowserResponse> {
      const action = /<form[^>]+action="([^"]+)"/.exec(page.text)?.[1] ?? '';
      const fields = [...page.text.matchAll(/<input[^>]+name="([^"]+)"[^>]+value="([^"]*)"/g)].map(
        ([, name = '', value = '']) => [name, unescape(value)] as const,
      );
      const body = new URLSearchParams({ ...Object.fromEntries(fields), ...change }).toString();
      return send(unescape(action), {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body,
        from: page.url,
      });
    },

    cookie: (base: string, name: string): string | undefined =>
      jarOf(new URL(base).host).get(name)?.value,
    /** Deletes a cookie. */
    forget: (base: string, name: string): void => void jarOf(new URL(base).host).delete(name),
  };
}

export type Browser = ReturnType<typeof createBrowser>;

const unescape = (text: string) =>
  text
    .replaceAll(/&#(x?)([0-9a-f]+);/gi, (_, hex: string, code: string) =>
      String.fromCharCode(Number.parseInt(code, hex === '' ? 10 : 16)),
    )
    .replaceAll('&quot;', '"')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&');

/** Where a browser was led back to after a failed login; undefined for any other response. */
export function failureOf({ url, status, headers }: BrowserResponse) {
  const target = URL.parse(headers.get('location') ?? '', url);
  const error = target?.searchParams.get('error');
  if (status !== 303 || !target || !error) return undefined;
  return { path: target.pathname, error, requestId: target.searchParams.get('requestId') };
}
