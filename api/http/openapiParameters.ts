import type { TObject } from 'typebox';
import { assertDefined } from '../../domain/shared/assert.ts';
import { COMMA_SEPARATED } from '../../platform/schemaCheck.ts';
import type { Components } from './components.ts';
import { headersReadBy, type HeaderName } from './requestHeaders.ts';
import type { RequestHeader, Route } from './route.ts';

const HEADER_DOCS = {
  Prefer:
    '`wait=N` waits up to N seconds (60 at most) for the job to finish; `timing` adds a `Server-Timing` header.',
  'If-Match':
    'ETag of the version that was read. The response is 412 if the record has changed since.',
  'If-None-Match':
    'ETag of the response that the client has. The response is 304 if it is still the same.',
  'Attempt-Token': 'The `attemptToken` of the attempt, from the response that began it.',
  'Last-Event-ID':
    'Id of the last message received: the stream continues after it. It replaces other starting points.',
  'Idempotency-Key':
    'Repeating the request with the same key and body within 24 hours returns the original response, ' +
    'or the record as it is now if the rights of the caller have changed. The response is 404 if the ' +
    'record is deleted or no longer visible to the caller.',
} as const satisfies Record<HeaderName, string>;

/** Without these a request is refused. */
const REQUIRED_HEADERS: ReadonlySet<string> = new Set<RequestHeader>(['Attempt-Token']);

type Parameter = { name: string; in: 'path' | 'query' | 'header' };

const header = (name: keyof typeof HEADER_DOCS): Parameter & Record<string, unknown> => ({
  name,
  in: 'header',
  ...(REQUIRED_HEADERS.has(name) && { required: true }),
  description: HEADER_DOCS[name],
  schema: { type: 'string' },
});

function inLocation(
  location: 'path' | 'query',
  schema: TObject | undefined,
  { refer }: Components,
): Parameter[] {
  const required = new Set(schema?.required ?? []);
  return Object.entries(schema?.properties ?? {}).map(([name, property]) => {
    const {
      description,
      [COMMA_SEPARATED]: commas,
      ...rest
    } = property as { description?: string; type?: string; [COMMA_SEPARATED]?: true };
    const isRequired = location === 'path' || (required.has(name) && !('default' in rest));
    return {
      name,
      in: location,
      ...(isRequired && { required: true }),
      ...(description !== undefined && { description }),
      ...(commas && { explode: false }),
      ...(rest.type === 'object' && { style: 'deepObject', explode: true }),
      schema: refer(rest, 'request'),
    };
  });
}

function parametersOf(route: Route, components: Components): Parameter[] {
  const { params, query } = route;
  return [
    ...inLocation('path', params, components),
    ...inLocation('query', query, components),
    ...headersReadBy(route).map(header),
  ];
}

const pascalCase = (text: string): string =>
  text.replaceAll(/(?:^|[-_.])(\w)/g, (_, letter: string) => letter.toUpperCase());

type Used = { parameter: Parameter; operations: string[] };

/** The name of each parameter that several operations have: of the same name, the most frequent first. */
function namesOf(used: Iterable<[string, Used]>): Map<string, string> {
  const shared = [...used]
    .filter(([, { operations }]) => operations.length > 1)
    .sort(([, a], [, b]) => b.operations.length - a.operations.length);
  const names = new Map<string, string>();
  const taken = new Set<string>();
  for (const [text, { parameter, operations }] of shared) {
    const plain = pascalCase(parameter.name);
    const name = taken.has(plain) ? `${pascalCase(operations[0] ?? '')}${plain}` : plain;
    taken.add(name);
    names.set(text, name);
  }
  return names;
}

/** The parameters of all operations. Those that several operations have are components. */
export function collectParameters(routes: readonly Route[], components: Components) {
  const used = new Map<string, Used>();
  const textsOf = new Map<Route, string[]>();
  for (const route of routes) {
    const texts = parametersOf(route, components).map((parameter) => {
      const text = JSON.stringify(parameter);
      const known = used.get(text) ?? { parameter, operations: [] };
      known.operations.push(route.operationId);
      used.set(text, known);
      return text;
    });
    textsOf.set(route, texts);
  }
  const names = namesOf(used);

  return {
    shared: Object.fromEntries([...names].map(([text, name]) => [name, used.get(text)?.parameter])),
    of: (route: Route): object[] =>
      (textsOf.get(route) ?? []).map((text) => {
        const name = names.get(text);
        return name === undefined
          ? assertDefined(used.get(text), 'parameter').parameter
          : { $ref: `#/components/parameters/${name}` };
      }),
  };
}
