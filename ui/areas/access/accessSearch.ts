import type { SearchText } from '../../app/search.ts';

const STATUSES = ['active', 'disabled', 'expired', 'revoked'] as const;

/** Which tokens the page of an account lists; without it, those that are active. */
export type TokensSearch = { tokens?: (typeof STATUSES)[number] };

export function validateTokensSearch({ tokens }: SearchText): TokensSearch {
  const status = STATUSES.find((each) => each === tokens);
  return status === undefined ? {} : { tokens: status };
}

/** Keeps these parameters of an address, which are texts. */
export const validateTexts =
  <Name extends string>(...names: readonly Name[]) =>
  (search: SearchText): Partial<Record<Name, string | undefined>> =>
    Object.fromEntries(
      names.map((name) => [name, search[name] === '' ? undefined : search[name]]),
    ) as Partial<Record<Name, string | undefined>>;
