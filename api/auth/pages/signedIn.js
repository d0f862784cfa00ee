const show = (text) => {
  document.getElementById('who').textContent = text;
};

try {
  const refreshed = await fetch('/api/auth/refresh', { method: 'POST' });
  if (refreshed.ok) {
    const { accessToken } = await refreshed.json();
    const response = await fetch('/api/auth/session', {
      headers: { authorization: `Bearer ${accessToken}` },
    });
    const { user, tenantId } = await response.json();
    show(`Signed in as ${user.displayName} (${user.username}), tenant ${tenantId}.`);
  } else {
    show('Not signed in.');
  }
} catch {
  show('Holdfast is not reachable.');
}
