const say = (text) => {
  document.getElementById('who').textContent = text;
};

try {
  const refreshed = await fetch('/api/auth/refresh', { method: 'POST' });
  if (refreshed.ok) {
    const { accessToken } = await refreshed.json();
    const answer = await fetch('/api/auth/session', {
      headers: { authorization: `Bearer ${accessToken}` },
    });
    const { user, tenantId } = await answer.json();
    say(`Signed in as ${user.displayName} (${user.username}), at tenant ${tenantId}.`);
  } else {
    say('Nobody is signed in here.');
  }
} catch {
  say('Holdfast cannot be reached.');
}
