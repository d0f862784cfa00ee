import { localNow } from '../parts/clock.ts';
import { hasUnsaved } from '../parts/form/unsaved.ts';

/** What a page shows. The router and Vite know the browser's own message, and would act on it themselves. */
const MISSING_PART = 'A part of the console could not be loaded from the server.';

const KEY = 'holdfast-reloaded';
/** Processes of two versions may answer in turn during a deployment. */
const ONCE_IN_MS = 60_000;

/** Parts that cannot be loaded fail with an error of our own. */
export function nameMissingParts(): void {
  addEventListener('vite:preloadError', ({ payload }) => {
    payload.message = MISSING_PART;
  });
}

export const isMissingPart = (error: unknown): boolean =>
  error instanceof Error && error.message === MISSING_PART;

function mayReload(): boolean {
  const last = Number(sessionStorage.getItem(KEY) ?? 0);
  sessionStorage.setItem(KEY, String(localNow()));
  return localNow() - last > ONCE_IN_MS;
}

/**
 * After a deployment, an open page asks for parts of the console that are not there any more. If the
 * server has another console than this one, the page reloads, once. It does not if the server cannot be
 * reached: then what is on screen is all there is. Nor does it while the page has something that is not saved.
 */
export async function reloadIfOutdated(): Promise<void> {
  const own = document.querySelector<HTMLScriptElement>('script[type=module]')?.src;
  const response = await fetch('/', { headers: { accept: 'text/html' } }).catch(() => undefined);
  if (own === undefined || response?.ok !== true) return;
  const page = await response.text();
  const isOutdated = !page.includes(new URL(own).pathname);
  if (isOutdated && !hasUnsaved() && mayReload()) location.reload();
}
