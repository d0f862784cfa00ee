// Recovers a page of which a file is missing. While a deployment replaces processes, one version answers with the
// page, and another one, which does not have its files, is asked for them. Successful answers remain in the cache of
// the browser, so the page is loaded again when each file has been answered once.
(() => {
  const KEY = 'holdfast-recovered';
  const MAX_RELOADS = 5;
  const WITHIN_MS = 60_000;
  const TRIES = 20;
  const PAUSE_MS = 300;

  let isRecovering = false;

  const filesOfPage = () =>
    [...document.querySelectorAll('script[type=module], link[href^="/assets/"]')].map(
      (element) => element.getAttribute('src') ?? element.getAttribute('href'),
    );

  const isRoot = () => document.getElementById('root')?.childElementCount === 0;

  /** Resolves to true as soon as a process has the file. */
  async function load(file) {
    for (let tries = 0; tries < TRIES; tries++) {
      const response = await fetch(file).catch(() => undefined);
      if (response?.ok) return true;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
    return false;
  }

  /** False when the page was reloaded too often, or the browser stores nothing that would count it. */
  function mayReload() {
    try {
      const times = JSON.parse(sessionStorage.getItem(KEY) ?? '[]');
      const recent = times.filter((time) => Date.now() - time < WITHIN_MS);
      sessionStorage.setItem(KEY, JSON.stringify([...recent, Date.now()]));
      return recent.length < MAX_RELOADS;
    } catch {
      return false;
    }
  }

  function say() {
    const text = document.createElement('p');
    text.setAttribute('role', 'alert');
    text.textContent =
      'The console could not be loaded: the server does not have all of its files. It may be in the middle of an upgrade.';
    const button = document.createElement('button');
    button.textContent = 'Reload the page';
    button.addEventListener('click', () => location.reload());
    document.getElementById('root')?.append(text, button);
  }

  async function recover() {
    if (isRecovering) return;
    isRecovering = true;
    // All elements are there then.
    if (document.readyState === 'loading')
      await new Promise((resolve) => addEventListener('DOMContentLoaded', resolve, { once: true }));
    const loaded = await Promise.all(filesOfPage().map(load));
    if (loaded.every(Boolean) && mayReload()) location.reload();
    else say();
  }

  // What is missing later, when the console has been shown, is a part that the console itself asks for.
  addEventListener(
    'error',
    ({ target }) => {
      const isFile = target instanceof HTMLScriptElement || target instanceof HTMLLinkElement;
      if (isFile && (document.readyState === 'loading' || isRoot())) void recover();
    },
    true,
  );
})();
