const show = (text) => {
  document.getElementById('who').textContent = text;
};

const REASONS = new Map([
  ['login_failed', 'Signing in failed. Start again.'],
  ['provider_unavailable', 'The identity provider is not available. Try again later.'],
  ['too_many_requests', 'There were too many attempts. Try again later.'],
]);

const failure = new URLSearchParams(location.search);
const error = failure.get('error');

async function showWho() {
  const refreshed = await fetch('/api/auth/refresh', { method: 'POST' });
  if (!refreshed.ok) return show('Not signed in.');
  const { accessToken } = await refreshed.json();
  const response = await fetch('/api/auth/session', {
    headers: { authorization: `Bearer ${accessToken}` },
  });
  const { user, tenantId } = await response.json();
  return show(`Signed in as ${user.displayName} (${user.username}), tenant ${tenantId}.`);
}

if (error === null) showWho().catch(() => show('Holdfast is not reachable.'));
else
  show(
    `${REASONS.get(error) ?? 'Signing in failed.'} (${error}, request ${failure.get('requestId') ?? 'unknown'})`,
  );
