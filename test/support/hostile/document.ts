/** The parts of a JSON Schema (2020-12) that the generator reads. */
export type Schema = {
  type?: string | readonly string[];
  properties?: Readonly<Record<string, Schema>>;
  required?: readonly string[];
  items?: Schema;
  anyOf?: readonly Schema[];
  enum?: readonly unknown[];
  const?: unknown;
  default?: unknown;
  examples?: readonly unknown[];
  format?: string;
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  minItems?: number;
  maxItems?: number;
};

export type Parameter = {
  name: string;
  in: 'path' | 'query' | 'header';
  required: boolean;
  schema: Schema;
};

type Media = { schema: Schema; example?: unknown };

/** An operation of the OpenAPI document. */
export type Operation = {
  /** `POST /api/jobs`; with what was filled in, where the document leaves a field open. */
  name: string;
  method: string;
  path: string;
  hasCaller: boolean;
  requiresSession: boolean;
  parameters: readonly Parameter[];
  body: { contentType: string; schema: Schema; example: unknown } | undefined;
  /** Content types by status; none for a response without a body. */
  responses: ReadonlyMap<number, readonly string[]>;
};

type Reference = { $ref: string };
type Response = { content?: Record<string, Media> };
type DocumentedOperation = {
  security: readonly object[];
  parameters: readonly Parameter[];
  requestBody?: { content: Record<string, Media> };
  responses: Record<string, Response | Reference>;
};
export type OpenApiDocument = {
  paths: Record<string, Record<string, DocumentedOperation>>;
  components: { responses: Record<string, Response>; schemas: { Problem: object } };
};

/** The operations of `document`; one for each content type of a request body. */
export function readOperations({ paths, components }: OpenApiDocument): Operation[] {
  const contentTypes = (response: Response | Reference): string[] => {
    const { content = {} } =
      '$ref' in response
        ? (components.responses[response.$ref.split('/').at(-1) ?? ''] ?? {})
        : response;
    return Object.keys(content);
  };
  const all = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  return all.flatMap(({ path, method, operation }): Operation[] => {
    const { security, parameters, requestBody, responses } = operation;
    const common: Operation = {
      name: `${method.toUpperCase()} ${path}`,
      method: method.toUpperCase(),
      path,
      hasCaller: security.length > 0,
      requiresSession: security.length === 1 && JSON.stringify(security).includes('session'),
      parameters,
      body: undefined,
      responses: new Map(
        Object.entries(responses).map(([status, response]) => [
          Number(status),
          contentTypes(response),
        ]),
      ),
    };
    if (requestBody === undefined) return [common];
    return Object.entries(requestBody.content).map(([contentType, { schema, example }]) => ({
      ...common,
      name: `${common.name}${contentType === 'application/json' ? '' : ` (${contentType})`}`,
      body: { contentType, schema, example },
    }));
  });
}
