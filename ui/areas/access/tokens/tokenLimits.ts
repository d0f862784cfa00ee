import { limitTexts } from '../../../app/account/tokenText.ts';
import type { Names } from '../../../parts/names.ts';
import { nounOf } from '../../../../domain/shared/nouns.ts';

type Token = Parameters<typeof limitTexts>[0] & { pools: readonly string[] | null };

/** What a token may do, in a line; one of runners takes jobs of its pools, and nothing else. */
export const tokenLimits = (token: Token, names?: Names): string =>
  token.pools === null
    ? limitTexts(token, names, 'it').join(' · ')
    : `Takes jobs of the ${nounOf('pool', token.pools.length)} ${token.pools.join(', ')}`;
