import type { SearchText } from '../../../app/search.ts';

const STATUSES = ['active', 'disabled', 'expired', 'revoked'] as const;
type Status = (typeof STATUSES)[number];

/** Which tokens the page lists; without it, those that are active. */
export type AccountSearch = { tokens?: Status };

export function validateAccountSearch({ tokens }: SearchText): AccountSearch {
  const status = STATUSES.find((each) => each === tokens);
  return status === undefined ? {} : { tokens: status };
}
