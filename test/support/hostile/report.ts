import type { WireRequest } from './requests.ts';

/** What is wrong with an answer: its class, and what distinguishes this case of it. */
export type Finding = { problem: string; detail?: string };

export type Failure = Finding & {
  operation: string;
  position: string;
  kind: string;
  request: WireRequest;
};

const MAX_CAUSES = 4;
const MAX_COMMANDS = 8;
const REPEATED = /(.{1,12}?)\1{39,}/gs;

const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** A JavaScript expression for `text` (each character a byte), with long repetitions written as such. */
function expressionOf(text: string): string {
  const pieces: string[] = [];
  let end = 0;
  for (const run of text.matchAll(REPEATED)) {
    const [all, unit = ''] = run;
    if (run.index > end) pieces.push(JSON.stringify(text.slice(end, run.index)));
    pieces.push(`${JSON.stringify(unit)}.repeat(${all.length / unit.length})`);
    end = run.index + all.length;
  }
  if (end < text.length || pieces.length === 0) pieces.push(JSON.stringify(text.slice(end)));
  return pieces.join(' + ');
}

const isPrintable = (text: string): boolean => text.length < 400 && /^[\x20-\x7e\n]*$/.test(text);

/** A shell word for `text`. */
const wordOf = (text: string): string =>
  isPrintable(text) ? quote(text) : `"$(node -p ${quote(expressionOf(text))})"`;

/** A shell command that sends the request to the server at $BASE. */
function asCurl({ method, path, headers, body }: WireRequest): string {
  const lines = Object.entries(headers).flatMap(([name, value]) => {
    if (typeof value !== 'string' && value.length === 0) return [`${name}:`];
    return [value].flat().map((each: string) => (each === '' ? `${name};` : `${name}: ${each}`));
  });
  const command = [
    `curl -sig -X ${method} "$BASE"${wordOf(path)}`,
    ...lines.map((line) => `-H ${wordOf(line)}`),
  ].join(' ');
  if (body === undefined) return command;
  const text = body.toString('latin1');
  if (isPrintable(text)) return `${command} --data-binary ${quote(text)}`;
  const program = `process.stdout.write(Buffer.from(${expressionOf(text)}, 'latin1'))`;
  return `node -e ${quote(program)} | ${command} --data-binary @-`;
}

/** Lists failures by class and operation; of each class some operations with a command that shows it. */
export function describeFailures(failures: readonly Failure[]): string {
  const classes = Map.groupBy(failures, ({ problem }) => problem);
  const parts = [...classes].map(([problem, all]) => {
    const operations = [...Map.groupBy(all, ({ operation }) => operation)];
    const shown = operations.slice(0, MAX_COMMANDS).map(([operation, group]) => {
      const causes = [...new Set(group.map(({ position, kind }) => `${position} (${kind})`))];
      const more = causes.length > MAX_CAUSES ? ` and ${causes.length - MAX_CAUSES} more` : '';
      const [first] = group;
      return [
        `  ${operation}: ${causes.slice(0, MAX_CAUSES).join(', ')}${more}`,
        ...(first?.detail === undefined ? [] : [`    ${first.detail}`]),
        ...(first === undefined ? [] : [`    ${asCurl(first.request)}`]),
      ].join('\n');
    });
    const rest = operations.slice(MAX_COMMANDS).map(([operation]) => operation);
    return [
      `${problem}: ${all.length} answers, ${operations.length} operations`,
      ...shown,
      ...(rest.length > 0 ? [`  and ${rest.join(', ')}`] : []),
    ].join('\n');
  });
  return `${failures.length} wrong answers.\n\n${parts.join('\n\n')}\n`;
}
