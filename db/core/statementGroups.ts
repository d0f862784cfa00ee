import pg from 'pg';

/**
 * A statement as the driver takes it, with two properties of ours. `waits`: it goes with the next
 * statement of its transaction. `isLast`: COMMIT goes with it.
 */
export type Statement = {
  text: string;
  name?: string;
  values?: readonly unknown[];
  waits?: boolean;
  isLast?: boolean;
};

type Result = { rows: unknown[]; rowCount: number | null };
type Done = (error: Error | null, result?: Result) => void;

/** A connection of the driver, as far as it is used here. */
export type GroupingConnection = {
  query(statement: Statement | string | pg.Submittable, ...more: unknown[]): unknown;
  connection: Wire;
};

/** The messages of the extended query protocol, and the statements that the server knows. */
type Wire = {
  stream: { cork(): void; uncork(): void };
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
const isExtended = ({ name, values = [] }: Statement): boolean =>
  name !== undefined || values.length > 0;

/** How Knex ends a transaction. */
const IS_END = /^(COMMIT;?|ROLLBACK;?)$/;

const NO_ROWS: Result = { rows: [], rowCount: 0 };

/**
 * Statements that are sent in one message and answered in one. When one fails, the server skips the
 * following ones. Only `main` may be one that the server has not parsed yet.
 */
class StatementGroup extends pg.Query {
  constructor(
    before: readonly Statement[],
    main: Statement,
    after: readonly Statement[],
    done: Done,
  ) {
    // The driver notes under this name that the server has parsed the statement.
    super(
      { text: main.text, ...(main.name !== undefined && { name: main.name }) },
      (error, results) =>
        error ? done(error) : done(null, ([results].flat() as unknown as Result[])[before.length]),
    );
    this.submit = (connection) => {
      const wire = connection as unknown as Wire;
      wire.stream.cork();
      try {
        for (const statement of [...before, main, ...after]) send(wire, statement);
        wire.sync();
      } finally {
        wire.stream.uncork();
      }
      return null;
    };
  }
}

function send(wire: Wire, statement: Statement): void {
  const { name, text, values = [] } = statement;
  if (!isKnown(wire, statement)) wire.parse({ name, text });
  wire.bind({ statement: name, values });
  wire.describe({ type: 'P', name: '' });
  wire.execute({});
}

type SendOne = GroupingConnection['query'];
type Run = (statement: Statement, done: Done) => void;

/** Sends statements by themselves. What comes in the meantime follows in its order, by `run`. */
function createApart(sendOne: SendOne, run: Run) {
  let later: { statement: Statement; done: Done }[] | undefined;

  function sendEach([first, ...rest]: readonly Statement[], done: Done): void {
    if (!first) return done(null);
    sendOne(first, (error: Error | null) => (error ? done(error) : sendEach(rest, done)));
  }

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
        else sendOne(main, done);
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

/**
 * Saves round trips of transactions: BEGIN, and statements of which nobody awaits the result, are
 * sent with the next statement, and COMMIT with the last one. What fails then is the statement that
 * they are sent with. Code that uses the connection does not notice.
 */
export function groupStatements(connection: GroupingConnection): void {
  const sendOne = connection.query.bind(connection);
  const wire = connection.connection;
  let waiting: Statement[] = [];
  let isCommitted = false;
  const apart = createApart(sendOne, (statement, done) => run(statement, done));

  function sendGroup(main: Statement, done: Done): void {
    const before = waiting;
    waiting = [];
    // Others are parsed now, or have several statements in their text.
    if (!before.every((each) => isKnown(wire, each)) || !isExtended(main))
      return apart.send(before, main, done);
    const commits = main.isLast === true && isKnown(wire, COMMIT);
    const group = new StatementGroup(before, main, commits ? [COMMIT] : [], (error, result) => {
      isCommitted = commits && !error;
      done(error, result);
    });
    sendOne(group);
  }

  /** True when the statement needs no answer of the server now. */
  function isPostponed({ text, waits, ...statement }: Statement): boolean {
    if (/^BEGIN\b/.test(text)) {
      isCommitted = false;
      waiting = [named(text.replace(/;$/, ''))];
      return true;
    }
    if (waits) {
      waiting.push({ text, ...statement });
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
    else if (waiting.length > 0 || statement.isLast) sendGroup(statement, done);
    else sendOne(statement.text === 'COMMIT;' ? COMMIT : statement, done);
  }

  connection.query = (statement, ...more) => {
    if (typeof statement === 'object' && 'submit' in statement) {
      if (waiting.length > 0 || apart.isSending())
        throw new Error('A stream cannot be the first of a transaction');
      return sendOne(statement, ...more);
    }
    const done = more.at(-1);
    const config = typeof statement === 'string' ? { text: statement } : statement;
    const values = (Array.isArray(more[0]) ? more[0] : config.values) as unknown[] | undefined;
    // Now: a value that cannot be converted must fail before a message of its group is sent.
    const whole = values ? { ...config, values: values.map((each) => prepareValue(each)) } : config;
    if (typeof done === 'function') return void run(whole, done as Done);
    return new Promise((resolve, reject) => {
      run(whole, (error, result) => (error ? reject(error) : resolve(result)));
    });
  };
}
