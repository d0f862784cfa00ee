import { parseCookie, stringifySetCookie } from 'cookie';

/** Where cookies are sent: to the sign-in endpoints and nowhere else. */
const PATH = '/api/auth';

/** Cookies are `Secure`, and named so, unless the API is reached over plain http. */
const isSecure = (origin: string) => origin.startsWith('https:');
const nameFor = (origin: string, name: string) => (isSecure(origin) ? `__Secure-${name}` : name);

type CookieSpec = {
  origin: string;
  name: string;
  value: string;
  maxAgeSeconds: number;
  sameSite: 'strict' | 'lax';
};

/** A `Set-Cookie` that scripts cannot read. An age of 0 takes the cookie away. */
export const setCookie = ({ origin, name, value, maxAgeSeconds, sameSite }: CookieSpec): string =>
  stringifySetCookie({
    name: nameFor(origin, name),
    value,
    path: PATH,
    httpOnly: true,
    sameSite,
    secure: isSecure(origin),
    maxAge: maxAgeSeconds,
  });

/** The value of a cookie in a `Cookie` header. */
export const readCookie = (
  header: string | undefined,
  origin: string,
  name: string,
): string | undefined => parseCookie(header ?? '')[nameFor(origin, name)];
