import { wholePercent } from '../../../parts/format.ts';

type Running = { rows: number; done: number; progress: { percent: number } | null };

/**
 * How far an import is that runs. A dry run stores the outcomes of all rows together: until then only its job says how
 * far it is.
 */
export function progressOf({ rows, done, progress }: Running) {
  const percent = done > 0 ? (100 * done) / rows : (progress?.percent ?? 0);
  return { percent: wholePercent(percent), rowsDone: Math.round((percent * rows) / 100) };
}
