/** How long a password is valid that must be changed at the first login. */
const ONE_TIME_PASSWORD_HOURS = 72;

/** When a one-time password ends that is set at this time. */
export const oneTimePasswordEnd = (setAt: Date): Date =>
  new Date(setAt.getTime() + ONE_TIME_PASSWORD_HOURS * 3_600_000);

/** A process of an earlier version stores no end. The account may have changed since. */
export const isPasswordExpired = (
  {
    mustChangePassword,
    passwordExpiresAt,
    updatedAt,
  }: { mustChangePassword: boolean; passwordExpiresAt: Date | null; updatedAt: Date },
  now: Date,
): boolean => mustChangePassword && now >= (passwordExpiresAt ?? oneTimePasswordEnd(updatedAt));
