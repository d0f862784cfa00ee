import { HOUR_MS } from '../shared/durations.ts';
/** How long a password is valid that must be changed at the first login. */
const ONE_TIME_PASSWORD_HOURS = 72;

/** When a one-time password ends that is set at this time. */
export const oneTimePasswordEnd = (setAt: Date): Date =>
  new Date(setAt.getTime() + ONE_TIME_PASSWORD_HOURS * HOUR_MS);

type Account = { mustChangePassword: boolean; passwordExpiresAt: Date | null; updatedAt: Date };

/**
 * Until when the one-time password of an account is valid; null for accounts without one. An earlier
 * version stored no end: then it counts from the last change of the account.
 */
export const passwordEndOf = ({
  mustChangePassword,
  passwordExpiresAt,
  updatedAt,
}: Account): Date | null =>
  mustChangePassword ? (passwordExpiresAt ?? oneTimePasswordEnd(updatedAt)) : null;

export function isPasswordExpired(account: Account, now: Date): boolean {
  const end = passwordEndOf(account);
  return end !== null && now >= end;
}
