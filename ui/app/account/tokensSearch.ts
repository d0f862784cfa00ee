import type { SearchText } from '../search.ts';

const STATUSES = ['active', 'disabled', 'expired', 'revoked'] as const;

/** Which tokens the page of an account lists; without it, those that are active. */
export type TokensSearch = { tokens?: (typeof STATUSES)[number] };

export function validateTokensSearch({ tokens }: SearchText): TokensSearch {
  const status = STATUSES.find((each) => each === tokens);
  return status === undefined ? {} : { tokens: status };
}
