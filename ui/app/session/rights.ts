import { queryClient } from '../queryClient.ts';
import { SUMMARY_KEY } from './tenant.ts';

/** What the service refuses, it may refuse often: the rights are read again at most once in this time. */
const REFUSED_MS = 15_000;

let readAt = Number.NEGATIVE_INFINITY;

/** Reads what the user may do again. */
const readRights = (): void => void queryClient.invalidateQueries({ queryKey: SUMMARY_KEY });

/**
 * Notes an answer of the API after which the user may have other rights: a change of roles that they have made
 * themselves, and a refusal of what the page has offered, since others may have made one.
 */
export function noteAnswer({ method, url }: Request, { ok, status }: Response): void {
  const path = new URL(url).pathname;
  if (ok && method !== 'GET' && path.startsWith('/api/rbac/')) readRights();
  if (status !== 403 || path === '/api/rbac/summary') return;
  const now = performance.now();
  if (now - readAt < REFUSED_MS) return;
  readAt = now;
  readRights();
}
