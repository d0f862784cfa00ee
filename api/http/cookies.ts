import { parseCookie, stringifySetCookie } from 'cookie';

/** Browsers send the cookies to the authentication endpoints only. */
const PATH = '/api/auth';

/**
 * Cookies have the attribute `Secure`, and its name prefix, unless the API is reached over http.
 */
const isSecure = (origin: string) => origin.startsWith('https:');
const cookieName = (origin: string, name: string) => (isSecure(origin) ? `__Secure-${name}` : name);

type CookieSpec = {
  origin: string;
  name: string;
  value: string;
  maxAgeSeconds: number;
  sameSite: 'strict' | 'lax';
};

/** Returns a `Set-Cookie` header for a cookie that scripts cannot read. An age of 0 deletes it. */
export const setCookie = ({ origin, name, value, maxAgeSeconds, sameSite }: CookieSpec): string =>
  stringifySetCookie({
    name: cookieName(origin, name),
    value,
    path: PATH,
    httpOnly: true,
    sameSite,
    secure: isSecure(origin),
    maxAge: maxAgeSeconds,
  });

/** Returns the value of a cookie from a `Cookie` header. */
export const readCookie = (
  header: string | undefined,
  origin: string,
  name: string,
): string | undefined => parseCookie(header ?? '')[cookieName(origin, name)];
