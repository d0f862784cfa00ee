import { createPause } from '../../platform/turns.ts';

/** Presents records one after another, in turns: many of them may be long. */
export async function presentAll<T, V>(
  items: readonly T[],
  present: (item: T) => V | Promise<V>,
): Promise<V[]> {
  const pause = createPause();
  const views: V[] = [];
  for (const item of items) {
    views.push(await present(item));
    await pause();
  }
  return views;
}
