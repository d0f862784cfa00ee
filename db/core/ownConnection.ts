import type { Knex } from './knex.ts';

/** Knex's client, as far as it hands out connections. */
type PoolClient = {
  acquireConnection(): Promise<object>;
  releaseConnection(connection: object): Promise<void>;
};

/** Runs a statement on one connection. */
type RunStatement = <Row = unknown>(sql: string, bindings?: Knex.RawBinding[]) => Promise<Row[]>;

/** Calls `work` with a connection of its own, outside of a transaction, for what belongs to a session. */
export async function withOwnConnection<T>(
  db: Knex,
  work: (run: RunStatement) => Promise<T>,
): Promise<T> {
  const client = db.client as PoolClient;
  const connection = await client.acquireConnection();
  try {
    return await work(async <Row>(sql: string, bindings: Knex.RawBinding[] = []) => {
      const { rows } = (await db.raw(sql, bindings).connection(connection)) as { rows: Row[] };
      return rows;
    });
  } finally {
    await client.releaseConnection(connection);
  }
}
