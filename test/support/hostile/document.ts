import { COMMON_PROBLEMS } from '../../../api/http/openapi.ts';

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

type DocumentedOperation = {
  security?: readonly object[];
  parameters: readonly (Omit<Parameter, 'required'> & { required?: boolean })[];
  requestBody?: { content: Record<string, Media> };
  responses: Record<string, { content?: Record<string, Media> }>;
};
export type OpenApiDocument = {
  security: readonly object[];
  paths: Record<string, Record<string, DocumentedOperation>>;
  components: { schemas: { Problem: object } };
};

/** The operations of a document without references; one for each content type of a request body. */
export function readOperations({ paths, security: usual }: OpenApiDocument): Operation[] {
  const all = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  return all.flatMap(({ path, method, operation }): Operation[] => {
    const { security = usual, requestBody, responses } = operation;
    const { default: other, ...listed } = responses;
    const parameters = operation.parameters.map((each) => ({ required: false, ...each }));
    const common: Operation = {
      name: `${method.toUpperCase()} ${path}`,
      method: method.toUpperCase(),
      path,
      hasCaller: security.length > 0,
      requiresSession: security.length === 1 && JSON.stringify(security).includes('session'),
      parameters,
      body: undefined,
      responses: new Map(
        [
          ...COMMON_PROBLEMS.map((status) => [status, other] as const),
          ...Object.entries(listed),
        ].map(([status, { content = {} } = {}]) => [Number(status), Object.keys(content)]),
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
