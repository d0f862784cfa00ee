// The fields that are needed, without the types of the API: its client needs a browser.
type Account = { enabled: boolean; mustChangePassword?: boolean };

/** The state of an account, as badges name it. */
export function accountState({ enabled, mustChangePassword = false }: Account): string {
  if (!enabled) return 'disabled';
  return mustChangePassword ? 'must_change_password' : 'active';
}
