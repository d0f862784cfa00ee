import type { TestApp } from './app.ts';

/** How many statements requests make. The application checks its components no more: that makes statements, too. */
export async function statementsOf(
  { deps: { db, readiness } }: TestApp,
  requests: () => Promise<unknown>,
): Promise<number> {
  await readiness.stop();
  let count = 0;
  const note = () => void (count += 1);
  db.on('query', note);
  try {
    await requests();
  } finally {
    db.off('query', note);
  }
  return count;
}
