import { createBeginAttempt, type BeginDeps } from './beginAttempt.ts';
import { createEndAttempt, type EndDeps } from './endAttempt.ts';

export type RemoteAttempts = ReturnType<typeof createRemoteAttempts>;

/** The attempts that runners make. Everything about them is decided from the record of the job. */
export function createRemoteAttempts(deps: EndDeps & Omit<BeginDeps, 'endAttempt'>) {
  const endAttempt = createEndAttempt(deps);
  const { end, finalize, requireStopped } = endAttempt;
  return { begin: createBeginAttempt({ ...deps, endAttempt }), end, finalize, requireStopped };
}
