import pg from 'pg';

/**
 * A statement as the driver takes it, with properties of ours. `waits`: it goes with the next
 * statement of its transaction. `isLast`: COMMIT goes with it. `maxRows`: in a transaction, the result comes in
 * pieces of that many rows. `resumes`: the next piece of the last statement of the transaction.
 */
export type Statement = {
  text: string;
  name?: string;
  values?: readonly unknown[];
  waits?: boolean;
  isLast?: boolean;
  maxRows?: number;
  resumes?: boolean;
};

type Result = {
  /** True: the result has more rows. */
  isCut?: boolean;
  command: string | null;
  rows: object[];
  rowCount: number | null;
  fields: readonly Field[];
};
type Done = (error: Error | null, result?: Result) => void;

/** A connection of the driver, as far as it is used here. */
export type GroupingConnection = {
  query(statement: Statement | string | pg.Submittable, ...more: unknown[]): unknown;
  connection: Wire;
};

/** A column of a result. */
type Field = { name: string; dataTypeID: number };

/** The messages of the extended query protocol, and the statements that the server knows. */
type Wire = {
  stream: { write(bytes: Buffer): void };
  parsedStatements: Readonly<Record<string, string | undefined>>;
  parse(message: { name: string | undefined; text: string }): void;
  bind(message: { statement: string | undefined; values: readonly unknown[] }): void;
  describe(message: { type: 'P'; name: string }): void;
  execute(message: object): void;
  sync(): void;
};

// The types of the driver do not have what converts its values.
const { prepareValue } = (pg as unknown as { utils: { prepareValue(value: unknown): unknown } })
  .utils;

/** Statements without bindings, under names of their own: the server parses them once. */
const named = (text: string): Statement => ({ text, name: text, values: [] });
const COMMIT = named('COMMIT');
const isKnown = (wire: Wire, { name, text }: Statement): boolean =>
  name !== undefined && wire.parsedStatements[name] === text;

/** True for a statement that the driver sends with the extended query protocol. */
const isExtended = ({ name, values = [], maxRows }: Statement): boolean =>
  name !== undefined || values.length > 0 || maxRows !== undefined;

/** True for a statement that the driver does not send as it has to be. */
const isOurs = ({ name, maxRows }: Statement): boolean =>
  name !== undefined || maxRows !== undefined;

/** How Knex ends a transaction. */
const IS_END = /^(COMMIT;?|ROLLBACK;?)$/;

const NO_ROWS: Result = { command: null, rows: [], rowCount: 0, fields: [] };

/** The columns of a result, and what converts their values. */
type Shape = { fields: readonly Field[]; parsers: ((text: string) => unknown)[]; empty: object };

function shapeOf(fields: readonly Field[]): Shape {
  const parserOf = pg.types.getTypeParser as (
    id: number,
    format: string,
  ) => (text: string) => unknown;
  return {
    fields,
    parsers: fields.map(({ dataTypeID }) => parserOf(dataTypeID, 'text')),
    empty: Object.fromEntries(fields.map(({ name }) => [name, null])),
  };
}

const NO_COLUMNS = shapeOf([]);

/** The shapes of all connections, by statement: usually each is the same in all of them. */
const shapes = new Map<string, Shape>();

const isSameShape = ({ fields }: Shape, others: readonly Field[]): boolean =>
  fields.length === others.length &&
  fields.every(
    ({ name, dataTypeID }, i) => name === others[i]?.name && dataTypeID === others[i].dataTypeID,
  );

function sharedShape(name: string, fields: readonly Field[]): Shape {
  const known = shapes.get(name);
  if (known && isSameShape(known, fields)) return known;
  const shape = shapeOf(fields);
  shapes.set(name, shape);
  return shape;
}

function rowOf({ fields, parsers, empty }: Shape, values: readonly (string | null)[]): object {
  const row = { ...empty } as Record<string, unknown>;
  for (let i = 0; i < values.length; i++) {
    const [value, name, parse] = [values[i], fields[i]?.name, parsers[i]];
    if (typeof value === 'string' && name !== undefined && parse) row[name] = parse(value);
  }
  return row;
}

/** `INSERT 0 1`, `SELECT 2`, `BEGIN`. */
const COMMAND = /^([A-Za-z]+)(?: (\d+))?(?: (\d+))?/;

type Parts = { before: readonly Statement[]; main: Statement; after: readonly Statement[] };

/**
 * Statements that are sent in one message and answered in one. When one fails, the server skips the
 * following ones. Only `main` may be one that the server has not parsed yet; the result is its result.
 *
 * The server describes the result of a prepared statement once: it cannot change, the server refuses a
 * statement whose columns have changed. `known` has what it has described.
 *
 * The driver calls the methods of this class as those of its own queries.
 */
class StatementGroup {
  // The driver notes under this name that the server has parsed the statement.
  readonly name: string | undefined;
  readonly text: string;
  readonly #statements: readonly Statement[];
  readonly #mainAt: number;
  readonly #known: Map<string, Shape>;
  readonly #done: Done;
  readonly #result: Result = { command: null, rows: [], rowCount: null, fields: [] };
  #shape: Shape | undefined;
  #failure: Error | undefined;
  /** The statement whose result comes now. */
  #at = 0;

  constructor({ before, main, after }: Parts, known: Map<string, Shape>, done: Done) {
    this.name = main.name;
    this.text = main.text;
    this.#statements = [...before, main, ...after];
    this.#mainAt = before.length;
    this.#known = known;
    this.#done = done;
  }

  /** Sends the messages of all statements in one piece. Returns an error when one cannot be made. */
  submit(connection: pg.Connection): Error | null {
    const wire = connection as unknown as Wire;
    const pieces: Buffer[] = [];
    // The driver makes each message and hands it to its stream.
    const collector = Object.create(wire, {
      stream: { value: { writable: true, write: (piece: Buffer) => pieces.push(piece) } },
    }) as Wire;
    const main = this.#statements[this.#mainAt];
    this.#shape = main?.name === undefined ? undefined : this.#known.get(main.name);
    try {
      for (const statement of this.#statements)
        send(collector, statement, statement === main && !this.#shape);
      collector.sync();
    } catch (error) {
      return error as Error;
    }
    wire.stream.write(Buffer.concat(pieces));
    return null;
  }

  handleRowDescription({ fields }: { fields: readonly Field[] }): void {
    this.#describe(fields);
  }

  handleDataRow({ fields }: { fields: readonly (string | null)[] }): void {
    if (this.#at !== this.#mainAt || this.#failure) return;
    try {
      this.#result.rows.push(rowOf(this.#shape ?? NO_COLUMNS, fields));
    } catch (error) {
      this.#failure = error as Error;
    }
  }

  handleCommandComplete({ text }: { text: string }): void {
    if (this.#at++ !== this.#mainAt) return;
    const [, command = null, first, second] = COMMAND.exec(text) ?? [];
    const count = second ?? first;
    this.#result.command = command;
    this.#result.rowCount = count === undefined ? null : Number(count);
    // It has been described as having no columns.
    if (!this.#shape) this.#describe([]);
    this.#result.fields = this.#shape?.fields ?? [];
  }

  handlePortalSuspended(): void {
    this.#at += 1;
    this.#result.isCut = true;
    this.#result.fields = this.#shape?.fields ?? [];
  }

  handleEmptyQuery(): void {
    this.#at += 1;
  }

  handleCopyInResponse(connection: { sendCopyFail(reason: string): void }): void {
    connection.sendCopyFail('A group of statements has no stream');
  }

  handleError(error: Error): void {
    this.#done(error);
  }

  handleReadyForQuery(): void {
    if (this.#failure) this.#done(this.#failure);
    else this.#done(null, this.#result);
  }

  #describe(fields: readonly Field[]): void {
    const { name } = this;
    this.#shape = name === undefined ? shapeOf(fields) : sharedShape(name, fields);
    if (name !== undefined) this.#known.set(name, this.#shape);
  }
}

function send(wire: Wire, statement: Statement, describes: boolean): void {
  const { name, text, values = [], maxRows = 0, resumes = false } = statement;
  if (!resumes) {
    if (!isKnown(wire, statement)) wire.parse({ name, text });
    wire.bind({ statement: name, values });
  }
  if (describes) wire.describe({ type: 'P', name: '' });
  wire.execute({ rows: maxRows });
}

type SendOne = GroupingConnection['query'];
type Run = (statement: Statement, done: Done) => void;

/** Sends statements by themselves. What comes in the meantime follows in its order, by `run`. */
function createApart(sendOne: SendOne, known: Map<string, Shape>, run: Run) {
  let later: { statement: Statement; done: Done }[] | undefined;

  function sendEach([first, ...rest]: readonly Statement[], done: Done): void {
    if (!first) return done(null);
    sendOne(first, (error: Error | null) => (error ? done(error) : sendEach(rest, done)));
  }

  /** The driver would read all pieces of a result. */
  const sendLast: Run = (main, done) =>
    void (main.maxRows === undefined
      ? sendOne(main, done)
      : sendOne(new StatementGroup({ before: [], main, after: [] }, known, done)));

  return {
    isSending: (): boolean => later !== undefined,

    sendLater: (statement: Statement, done: Done) => void later?.push({ statement, done }),

    /** Sends `main` after others. It fails if one of them fails. */
    send(before: readonly Statement[], main: Statement, done: Done): void {
      later = [];
      sendEach(before, (error) => {
        const following = later ?? [];
        later = undefined;
        if (error) done(error);
        else sendLast(main, done);
        // BEGIN may have failed: nothing of its transaction may be carried out by itself.
        let failure = error;
        for (const each of following) {
          if (IS_END.test(each.statement.text)) failure = null;
          if (failure) each.done(failure);
          else run(each.statement, each.done);
        }
      });
    },
  };
}

/** Called with each statement, returns what is called at its answer. */
export type OnSend = (statement: Statement) => () => void;

/** Answers as the driver does: calls `done`, or returns a promise if there is none. Before, it calls `onAnswer`. */
function answerTo(done: unknown, onAnswer: () => void, run: (done: Done) => void): unknown {
  const runTo = (end: Done) =>
    run((error, result) => {
      onAnswer();
      end(error, result);
    });
  if (typeof done === 'function') return void runTo(done as Done);
  return new Promise((resolve, reject) => {
    runTo((error, result) => (error ? reject(error) : resolve(result)));
  });
}

const IGNORE: OnSend = () => () => undefined;

/**
 * Saves round trips of transactions: BEGIN, and statements of which nobody awaits the result, are
 * sent with the next statement, and COMMIT with the last one. What fails then is the statement that
 * they are sent with. Code that uses the connection does not notice.
 */
export function groupStatements(connection: GroupingConnection, onSend = IGNORE): void {
  const sendOne = connection.query.bind(connection);
  const wire = connection.connection;
  const known = new Map<string, Shape>();
  let waiting: Statement[] = [];
  let isCommitted = false;
  const apart = createApart(sendOne, known, (statement, done) => run(statement, done));

  function sendGroup(main: Statement, done: Done): void {
    const before = waiting.splice(0);
    // Others are parsed now, or have several statements in their text.
    if (!before.every((each) => isKnown(wire, each)) || !isExtended(main))
      return apart.send(before, main, done);
    const commits = main.isLast === true && isKnown(wire, COMMIT);
    const parts = { before, main, after: commits ? [COMMIT] : [] };
    const end: Done = (error, result) => {
      isCommitted = commits && !error;
      done(error, result);
    };
    sendOne(new StatementGroup(parts, known, end));
  }

  /** True when the statement needs no answer of the server now. */
  function isPostponed(statement: Statement): boolean {
    const { text } = statement;
    if (/^BEGIN\b/.test(text)) {
      isCommitted = false;
      waiting = [named(text.replace(/;$/, ''))];
      return true;
    }
    if (statement.waits) {
      waiting.push(statement);
      return true;
    }
    if (!IS_END.test(text)) return false;
    const hasStarted = !waiting[0]?.text.startsWith('BEGIN');
    const isOver = !hasStarted || (isCommitted && text.startsWith('COMMIT'));
    waiting = [];
    isCommitted = false;
    return isOver;
  }

  function run(statement: Statement, done: Done): void {
    if (apart.isSending()) apart.sendLater(statement, done);
    else if (isPostponed(statement)) process.nextTick(() => done(null, NO_ROWS));
    else if (waiting.length > 0 || statement.isLast || isOurs(statement))
      sendGroup(statement, done);
    else sendOne(statement.text === 'COMMIT;' ? COMMIT : statement, done);
  }

  connection.query = (statement, ...more) => {
    if (typeof statement === 'object' && 'submit' in statement) {
      if (waiting.length > 0 || apart.isSending())
        throw new Error('A stream cannot be the first of a transaction');
      return sendOne(statement, ...more);
    }
    const config = typeof statement === 'string' ? { text: statement } : statement;
    const values = (Array.isArray(more[0]) ? more[0] : config.values) as unknown[] | undefined;
    // Now: a value that cannot be converted must fail before a message of its group is sent.
    const whole = values ? { ...config, values: values.map((each) => prepareValue(each)) } : config;
    return answerTo(more.at(-1), onSend(whole), (done) => run(whole, done));
  };
}
