import type { MigrationSource } from './source.ts';
import { splitList, statementsOf } from './statements.ts';

/** Tables that have at most some thousands of rows: reading or checking all of one takes a moment. */
const SMALL = new Set(
  `access_state backups custom_fields event_head job_types job_type_versions pools providers purge_state
   restore_runs retention_settings roles runners schema_contracts tenant_quotas view_defaults views workers`.split(
    /\s+/,
  ),
);

/** What the statements of a migration are judged by. */
type Context = {
  /** Tables that the migration itself creates: nothing uses them yet. */
  created: ReadonlySet<string>;
  /** All statements, to find what is removed and added again. */
  all: string;
};

/** Why something is not additive, or undefined. */
type Finding = string | undefined;

const isNew = ({ created }: Context, table: string): boolean => created.has(table);
const isSmall = (context: Context, table: string): boolean =>
  isNew(context, table) || SMALL.has(table);

const VOLATILE =
  /\b(random|gen_random_uuid|clock_timestamp|timeofday|nextval|uuid_generate\w*)\s*\(/i;

/** `ADD COLUMN …` */
function judgeColumn(context: Context, table: string, action: string): Finding {
  if (/\bNOT NULL\b/i.test(action) && !/\bDEFAULT\b/i.test(action))
    return 'adds a column that is NOT NULL without a default';
  if (/\b(GENERATED|(small|big)?serial)\b/i.test(action) || VOLATILE.test(action))
    return 'adds a column whose values are computed, which writes the whole table again';
  if (/\b(UNIQUE|PRIMARY KEY)\b/i.test(action))
    return 'adds a column with an index, which is built while the table is locked';
  return /\b(CHECK|REFERENCES)\b/i.test(action) && !isSmall(context, table)
    ? 'adds a column with a constraint, for which the whole table is read; add the constraint NOT VALID'
    : undefined;
}

/** `ADD CONSTRAINT …`, with or without a name. */
function judgeConstraint(context: Context, table: string, action: string): Finding {
  if (!/\b(CHECK|FOREIGN KEY|NOT NULL)\b/i.test(action))
    return 'adds a unique constraint, which older processes may violate';
  return /\bNOT VALID\b/i.test(action) || isSmall(context, table)
    ? undefined
    : 'adds a constraint, for which the whole table is read; add it NOT VALID';
}

function judgeDroppedConstraint({ all }: Context, action: string): Finding {
  const [, name = ''] = /^DROP CONSTRAINT (?:IF EXISTS )?(\w+)/i.exec(action) ?? [];
  return new RegExp(`ADD CONSTRAINT ${name} CHECK`, 'i').test(all)
    ? undefined
    : 'drops a constraint';
}

function judgeValidation({ all }: Context, action: string): Finding {
  const [, name = ''] = /^VALIDATE CONSTRAINT (\w+)/i.exec(action) ?? [];
  return new RegExp(`ADD CONSTRAINT ${name}\\b`, 'i').test(all)
    ? 'validates a constraint while the table is locked by adding it; validate it in the next migration'
    : undefined;
}

const ADDS_CONSTRAINT = /^ADD (CONSTRAINT|CHECK|UNIQUE|PRIMARY KEY|FOREIGN KEY|EXCLUDE)\b/i;

/** Actions of ALTER TABLE that are refused, whatever the table has. */
const REFUSED_ACTIONS: readonly [RegExp, string][] = [
  [/^RENAME\b/i, 'renames something'],
  [/^DROP (?!CONSTRAINT)/i, 'drops a column'],
  [/^ALTER (COLUMN )?\w+ (SET DATA )?TYPE\b/i, 'changes the type of a column'],
  [/^ALTER (COLUMN )?\w+ SET NOT NULL\b/i, 'makes a column NOT NULL'],
  [/^ALTER (COLUMN )?\w+ DROP (DEFAULT|EXPRESSION|IDENTITY)\b/i, 'drops a default'],
  [/^ALTER (COLUMN )?\w+ ADD GENERATED\b/i, 'makes a column generated'],
  [/^(DISABLE|ENABLE ALWAYS|ENABLE REPLICA)\b/i, 'disables a trigger'],
  [/^(ATTACH|DETACH|INHERIT|NO INHERIT)\b/i, 'changes partitions or inheritance'],
  [/^SET (TABLESPACE|LOGGED|UNLOGGED|ACCESS METHOD|SCHEMA)\b/i, 'writes or moves a whole table'],
];

function judgeAction(context: Context, table: string, action: string): Finding {
  const refused = REFUSED_ACTIONS.find(([pattern]) => pattern.test(action));
  if (refused) return refused[1];
  if (/^DROP CONSTRAINT\b/i.test(action)) return judgeDroppedConstraint(context, action);
  if (/^VALIDATE CONSTRAINT\b/i.test(action)) return judgeValidation(context, action);
  if (ADDS_CONSTRAINT.test(action)) return judgeConstraint(context, table, action);
  return /^ADD\b/i.test(action) ? judgeColumn(context, table, action) : undefined;
}

function judgeAlterTable(context: Context, text: string): Finding {
  const [, table = '', actions = ''] =
    /^ALTER TABLE (?:IF EXISTS )?(?:ONLY )?(\S+) (.*)$/i.exec(text) ?? [];
  if (isNew(context, table)) return undefined;
  return splitList(actions)
    .map((action) => judgeAction(context, table, action))
    .find((finding) => finding !== undefined);
}

function judgeIndex(context: Context, text: string): Finding {
  const [, unique, concurrently, table = ''] =
    /^CREATE (UNIQUE )?INDEX (CONCURRENTLY )?.*?\bON (?:ONLY )?(\w+)/i.exec(text) ?? [];
  if (isNew(context, table)) return undefined;
  if (unique) return 'adds a unique index, which older processes may violate';
  if (concurrently) return 'builds an index concurrently by itself; use createIndexOnline';
  return isSmall(context, table)
    ? undefined
    : 'builds an index while the table is locked; use createIndexOnline';
}

function judgeDrop({ all }: Context, text: string): Finding {
  const [, trigger] = /^DROP TRIGGER (?:IF EXISTS )?(\w+)/i.exec(text) ?? [];
  const isMadeAgain =
    trigger !== undefined &&
    new RegExp(`CREATE (OR REPLACE )?TRIGGER ${trigger}\\b`, 'i').test(all);
  return isMadeAgain ? undefined : `drops something that older processes may use`;
}

/** Changes of rows, also in DO blocks and after WITH. */
function judgeRows(context: Context, text: string): Finding {
  for (const [, table = ''] of text.matchAll(
    /(?<!\b(?:FOR|DO|OR|AFTER|BEFORE|ON|OF) )\b(?:UPDATE|DELETE FROM|MERGE INTO) (?:ONLY )?(\w+)/gi,
  ))
    if (!isSmall(context, table))
      return 'changes rows of a table that may be large, and keeps them locked; do that in batches, in a job';
  return undefined;
}

const HEAVY = /^(TRUNCATE|LOCK|VACUUM|CLUSTER|REINDEX|REFRESH MATERIALIZED VIEW)\b/i;

function judgeStatement(context: Context, text: string): Finding {
  if (/^ALTER TABLE\b/i.test(text)) return judgeAlterTable(context, text);
  if (/^CREATE (UNIQUE )?INDEX\b/i.test(text)) return judgeIndex(context, text);
  if (/^DROP\b/i.test(text)) return judgeDrop(context, text);
  if (/^ALTER\b.*\bRENAME\b/i.test(text)) return 'renames something';
  if (HEAVY.test(text)) return 'locks or writes a whole table';
  return /^CREATE\b/i.test(text) ? undefined : judgeRows(context, text);
}

const BUILDER = [
  'createTable',
  'alterTable',
  'dropTable',
  'renameTable',
  'update',
  'delete',
  'del',
];

/** What a migration does that an older process, or a busy one, would suffer from. */
export function findNotAdditive({ sql, calls, runsInTransaction }: MigrationSource): string[] {
  const statements = sql.flatMap(statementsOf);
  const all = statements.map(({ text }) => text).join('; ');
  const created = new Set(
    [...all.matchAll(/CREATE (?:UNLOGGED )?TABLE (?:IF NOT EXISTS )?(\w+)/gi)].map(
      ([, table = '']) => table,
    ),
  );
  const context = { created, all };
  const findings = statements.flatMap(({ text, isDynamic }) => {
    const finding = isDynamic
      ? 'makes SQL that this check cannot read'
      : judgeStatement(context, text);
    return finding === undefined ? [] : [`${finding}: ${text.slice(0, 100)}`];
  });
  const builders = BUILDER.filter((name) => calls.has(name));
  if (builders.length > 0) findings.push(`uses ${builders.join(', ')} of Knex; write SQL instead`);
  const isOnline = calls.has('createIndexOnline') || calls.has('dropIndexOnline');
  if (isOnline && runsInTransaction)
    findings.push('uses createIndexOnline in a transaction; set config.transaction to false');
  if (!runsInTransaction && /\b(ALTER|CREATE|DROP|INSERT|UPDATE|DELETE)\b/i.test(all))
    findings.push('runs statements without a transaction; only createIndexOnline may');
  return findings;
}
