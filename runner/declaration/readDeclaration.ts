import path from 'node:path';
import { isMap, isPair, LineCounter, parseDocument, type Document } from 'yaml';
import { isReservedTypeName } from '../../domain/jobs/jobTypeNames.ts';
import { MAX_DEFINITION_BYTES, RemoteTypeDefinition } from '../../domain/runners/definition.ts';
import { compileForeignSchema } from '../../platform/foreignSchema.ts';
import { isDeeperThan, MAX_DEPTH } from '../../platform/jsonDepth.ts';
import { errorMessage } from '../../domain/shared/errorMessage.ts';
import { unescapePointer } from '../../domain/shared/jsonPointer.ts';
import { compileCheck } from '../../platform/schemaCheck.ts';
import { parseArgument, problemOfField } from './placeholders.ts';
import { Declaration } from './schema.ts';
import { parseStrictJson } from '../../platform/strictJson.ts';

/** What a file says wrongly. Each problem names the line and the field. */
export class DeclarationError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.name = 'DeclarationError';
    this.problems = problems;
  }
}

/** Largest file, in bytes. */
export const MAX_FILE_BYTES = 262_144;

/** A problem at a field; the pointer is a JSON Pointer (RFC 6901). */
type Problem = { pointer: string; message: string };

const check = compileCheck(Declaration);

/**
 * Reads a declaration of a job type from YAML 1.2 (core schema, without aliases), and sets the defaults.
 * `file` is its absolute path, for messages. Error: `DeclarationError`, with all problems.
 */
export function readDeclaration(file: string, text: string): Declaration {
  const lines = new LineCounter();
  const at = (offset: number | undefined) => {
    const { line, col } = lines.linePos(offset ?? 0);
    return `${file}:${line}:${col}`;
  };
  if (Buffer.byteLength(text) > MAX_FILE_BYTES)
    throw new DeclarationError([`${file}: is larger than ${MAX_FILE_BYTES} bytes`]);
  const document = parseDocument(text, {
    lineCounter: lines,
    version: '1.2',
    schema: 'core',
    stringKeys: true,
    prettyErrors: false,
  });
  const broken = [...document.errors, ...document.warnings];
  if (broken.length > 0)
    throw new DeclarationError(broken.map(({ pos, message }) => `${at(pos[0])}: ${message}`));
  const value = toValue(document, file);
  const problems = isDeeperThan(MAX_DEPTH, value)
    ? [{ pointer: '', message: `is nested deeper than ${MAX_DEPTH} levels` }]
    : check(value);
  const found = problems.length > 0 ? problems : problemsOf(value as Declaration);
  if (found.length === 0) return value as Declaration;
  throw new DeclarationError(
    found.map(({ pointer, message }) => {
      const field = pointer === '' ? 'the file' : pointer.slice(1).replaceAll('/', '.');
      return `${at(offsetOf(document, pointer))}: ${field} ${message}`;
    }),
  );
}

function toValue(document: Document, file: string): unknown {
  try {
    return document.toJS({ maxAliasCount: 0 });
  } catch (error) {
    const reason = errorMessage(error);
    throw new DeclarationError([`${file}: ${reason}`]);
  }
}

/** Where a field is in the file; of one that is missing, where the object is that should have it. */
function offsetOf(document: Document, pointer: string): number | undefined {
  const tokens = pointer.split('/').slice(1).map(unescapePointer);
  let offset = document.contents?.range?.[0];
  for (let depth = 1; depth <= tokens.length; depth++) {
    const parent: unknown =
      depth === 1 ? document.contents : document.getIn(tokens.slice(0, depth - 1), true);
    const name = tokens[depth - 1];
    const pair = isMap(parent)
      ? parent.items.find((item) => isPair(item) && String(item.key) === name)
      : undefined;
    const node: unknown = pair ? pair.key : document.getIn(tokens.slice(0, depth), true);
    const range = (node as { range?: readonly number[] } | null | undefined)?.range;
    if (!range) break;
    offset = range[0];
  }
  return offset;
}

/** What the schema of declarations cannot say. */
function problemsOf(declaration: Declaration): Problem[] {
  return [
    ...problemsOfName(declaration),
    // The API would refuse it, and with it all other types of the runner.
    ...parseStrictJson(JSON.stringify(declaration)).errors,
    ...problemsOfSchemas(declaration),
    ...problemsOfVariables(declaration),
    ...problemsOfRun(declaration),
  ];
}

function problemsOfName({ name }: Declaration): Problem[] {
  if (!isReservedTypeName(name)) return [];
  return [{ pointer: '/name', message: 'must not begin with a word of the types of Holdfast' }];
}

function problemsOfSchemas(declaration: Declaration): Problem[] {
  const problems: Problem[] = [];
  const { payload, result } = declaration;
  if (payload.type !== 'object')
    problems.push({ pointer: '/payload/type', message: 'must be "object"' });
  for (const [name, schema] of Object.entries({ payload, result })) {
    try {
      if (schema) compileForeignSchema(schema);
    } catch (error) {
      const reason = errorMessage(error);
      problems.push({ pointer: `/${name}`, message: `is not a valid JSON Schema: ${reason}` });
    }
  }
  const bytes = Buffer.byteLength(JSON.stringify(definitionOf(declaration)));
  if (bytes > MAX_DEFINITION_BYTES)
    problems.push({ pointer: '', message: `has more than ${MAX_DEFINITION_BYTES} bytes as JSON` });
  return problems;
}

/** A variable has one source, and those of Holdfast are its own. */
function problemsOfVariables({ run, secrets }: Declaration): Problem[] {
  const variables: readonly (readonly [string, object])[] = [
    ['/run/env', run.env ?? {}],
    ['/run/secrets', run.secrets ?? {}],
    ['/secrets', secrets ?? {}],
  ];
  const seen = new Set<string>();
  const problems: Problem[] = [];
  for (const [pointer, names] of variables)
    for (const name of Object.keys(names)) {
      if (seen.has(name))
        problems.push({ pointer: `${pointer}/${name}`, message: 'is declared twice' });
      if (name.startsWith('HOLDFAST_'))
        problems.push({ pointer: `${pointer}/${name}`, message: 'is a variable of Holdfast' });
      seen.add(name);
    }
  return problems;
}

function problemsOfRun({ run, targets, payload }: Declaration): Problem[] {
  const problems: Problem[] = [];
  if (run.cwd !== undefined && path.normalize(run.cwd).split(path.sep)[0] === '..')
    problems.push({ pointer: '/run/cwd', message: 'must not leave the folder of the file' });
  if (run.argv[0] === '') problems.push({ pointer: '/run/argv/0', message: 'must not be empty' });
  run.argv.forEach((argument, i) => {
    const { parts, problem } = parseArgument(argument);
    const of = parts.filter((part) => typeof part !== 'string');
    const found =
      problem ??
      (argument.includes('\0') ? 'must not contain the character U+0000' : undefined) ??
      (i === 0 && of.length > 0 ? 'is the program and must have no placeholder' : undefined) ??
      (targets === 'none' && of.some((part) => part.of === 'target')
        ? 'names a target, but jobs of the type have none'
        : undefined) ??
      of
        .filter((part) => part.of === 'payload')
        .map(({ field }) => problemOfField(payload, field))
        .find((each) => each !== undefined);
    if (found !== undefined) problems.push({ pointer: `/run/argv/${i}`, message: found });
  });
  return problems;
}

/** What runners announce of a declaration: how it runs is their own. */
export const definitionOf = (declaration: Declaration): RemoteTypeDefinition =>
  Object.fromEntries(
    Object.keys(RemoteTypeDefinition.properties).flatMap((name) => {
      const value = declaration[name as keyof RemoteTypeDefinition];
      return value === undefined ? [] : [[name, value] as const];
    }),
  ) as RemoteTypeDefinition;
