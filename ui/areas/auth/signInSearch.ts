import type { SearchText } from '../../app/search.ts';

/** What leads to the sign-in page, and how it goes on. */
export type SignInSearch = {
  /** Path to open after signing in. */
  to?: string | undefined;
  /** Why a login at a provider failed, and the request that it failed in. */
  error?: string | undefined;
  requestId?: string | undefined;
  /** The page is in a window beside a page whose session has expired: a provider, or `done`. */
  window?: string | undefined;
};

const OWN_ORIGIN = 'https://console.invalid';

/** Paths of this origin only, as browsers read them: a backslash is a slash, and tabs and line feeds are nothing. */
const isOwnPath = (text: string | undefined): text is string =>
  text?.startsWith('/') === true && URL.parse(text, OWN_ORIGIN)?.origin === OWN_ORIGIN;

export const validateSignInSearch = ({
  to,
  error,
  requestId,
  window,
}: SearchText): SignInSearch => ({
  // The router keeps what a validation does not mention, so what is refused is said to be undefined.
  to: isOwnPath(to) ? to : undefined,
  error,
  requestId,
  window,
});
