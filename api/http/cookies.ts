import { parseCookie, stringifySetCookie } from 'cookie';

/** Over http, browsers send the cookies to the authentication endpoints only. */
const AUTH_PATH = '/api/auth';

const isSecure = (origin: string) => origin.startsWith('https:');

/**
 * Over https, the name says that no other host of the domain has set the cookie (`__Host-`, RFC 6265bis,
 * 4.1.3.2). It requires the path `/`.
 */
const cookieName = (origin: string, name: string) => (isSecure(origin) ? `__Host-${name}` : name);

/**
 * The name up to 0.2.0, which does not keep other hosts of the domain out.
 * until 0.4: remove it, `readKeptCookie`, and the second header of `setCookie`.
 */
const formerName = (name: string) => `__Secure-${name}`;

type CookieSpec = {
  origin: string;
  name: string;
  value: string;
  maxAgeSeconds: number;
  sameSite: 'strict' | 'lax';
};

/**
 * Returns the `Set-Cookie` headers for a cookie that scripts cannot read. An age of 0 deletes it. A
 * cookie of 0.2.0 is deleted: its token is worth nothing any more.
 */
export function setCookie({ origin, name, value, maxAgeSeconds, sameSite }: CookieSpec): string[] {
  const secure = isSecure(origin);
  const cookie = { httpOnly: true, sameSite, secure };
  return [
    stringifySetCookie({
      ...cookie,
      name: cookieName(origin, name),
      value,
      path: secure ? '/' : AUTH_PATH,
      maxAge: maxAgeSeconds,
    }),
    ...(secure
      ? [
          stringifySetCookie({
            ...cookie,
            name: formerName(name),
            value: '',
            path: AUTH_PATH,
            maxAge: 0,
          }),
        ]
      : []),
  ];
}

/** Returns the value of a cookie from a `Cookie` header. */
export const readCookie = (
  header: string | undefined,
  origin: string,
  name: string,
): string | undefined => parseCookie(header ?? '')[cookieName(origin, name)];

/**
 * The same for a cookie that 0.2.0 may have set, so that sessions outlast the upgrade.
 * until 0.4: call `readCookie` instead.
 */
export const readKeptCookie = (
  header: string | undefined,
  origin: string,
  name: string,
): string | undefined =>
  readCookie(header, origin, name) ??
  (isSecure(origin) ? parseCookie(header ?? '')[formerName(name)] : undefined);
