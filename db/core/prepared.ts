import { hash } from 'node:crypto';
import type { Knex } from './knex.ts';
import { numbered } from './sql.ts';
import type { Statement } from './statementGroups.ts';

/** Most statements that get a name. Each uses memory in every connection of the server. */
const MAX_NAMES = 300;

/** Without a name, the server does not keep a statement. */
type NamedStatement = Pick<Statement, 'text' | 'name'>;

const statements = new Map<string, NamedStatement>();

function statementOf(sql: string): NamedStatement {
  const known = statements.get(sql);
  if (known) return known;
  const text = numbered(sql);
  if (statements.size >= MAX_NAMES) return { text };
  const name = hash('sha256', sql, 'base64url').slice(0, 20);
  statements.set(sql, { text, name });
  return { text, name };
}

/** Knex's client, as far as it is used here: that of a pool, or of a transaction. */
type QueryClient = {
  acquireConnection(): Promise<Connection>;
  releaseConnection(connection: Connection): Promise<void>;
  emit(event: 'query', query: { sql: string; bindings: readonly unknown[] }): boolean;
};
type Connection = { query(statement: Statement): Promise<unknown> };
type Result<R> = { rows: R[]; rowCount: number; isCut?: boolean };

/**
 * Saves a round trip of a transaction. `waits`: nobody needs the result, and the statement is sent with
 * the next one, which fails if it fails. `isLast`: the transaction is committed with it.
 */
type InTransaction = Pick<Statement, 'waits' | 'isLast'>;

/**
 * Runs a frequent statement as a prepared one, which PostgreSQL parses once per connection. Every `?`
 * is a binding. The statement must name its columns: `*` fails in running processes when a migration
 * adds a column.
 *
 * It uses the connection of Knex, but not its query builder, which converts the text of a statement
 * several times; for large statements that costs more than sending them.
 */
export const prepared = <R extends object>(
  db: Knex,
  sql: string,
  bindings: readonly Knex.RawBinding[],
  inTransaction: InTransaction = {},
): Promise<Result<R>> => send(db, { ...statementOf(sql), ...inTransaction, values: bindings });

/**
 * The result of a statement of a transaction, in pieces of up to `maxRows` rows. The server computes a
 * piece when it is read: a reader that stops saves the rest, and a result of one piece costs no more than
 * with `prepared`. In the meantime the transaction may have no other statement. A statement that is
 * rarely repeated is not `isPrepared`.
 */
export async function* inPieces<R extends object>(
  trx: Knex,
  sql: string,
  bindings: readonly Knex.RawBinding[],
  { maxRows, isPrepared = true }: { maxRows: number; isPrepared?: boolean },
): AsyncGenerator<R[]> {
  const statement = { ...(isPrepared ? statementOf(sql) : { text: numbered(sql) }), maxRows };
  let piece: Result<R> = await send(trx, { ...statement, values: bindings });
  while (piece.isCut) {
    yield piece.rows;
    piece = await send(trx, { ...statement, resumes: true });
  }
  yield piece.rows;
}

async function send<R extends object>(db: Knex, statement: Statement): Promise<Result<R>> {
  if ('isCompleted' in db && (db as Knex.Transaction).isCompleted())
    throw new Error('The transaction of a statement is over');
  const client = db.client as QueryClient;
  const connection = await client.acquireConnection();
  try {
    client.emit('query', { sql: statement.text, bindings: statement.values ?? [] });
    return (await connection.query(statement)) as Result<R>;
  } finally {
    await client.releaseConnection(connection);
  }
}
