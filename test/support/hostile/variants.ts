import type { TestClient } from '../client.ts';
import type { Operation, Schema } from './document.ts';
import { sampleOf } from './values.ts';

type JobTypes = { items: { name: string; payloadSchema: Schema; createdOnlyBy: string | null }[] };
type ProviderKinds = { items: { kind: string; configSchema: Schema }[] };

/**
 * Operations whose body has an open field that another field decides, once for each choice: the payload of a job, the
 * configuration of an identity provider, and the record of a mutation.
 */
export async function findVariants(
  client: TestClient,
  operations: readonly Operation[],
): Promise<Operation[]> {
  const jobTypes = await client.get<JobTypes>('/api/job-types').expect(200);
  const kinds = await client.get<ProviderKinds>('/api/auth/provider-kinds').expect(200);
  const resources = operations.flatMap(({ method, path, body }) => {
    const [, resource] = /^\/api\/inventory\/([^/]+)$/.exec(path) ?? [];
    return method === 'POST' &&
      resource !== undefined &&
      !['bulk', 'import'].includes(resource) &&
      body
      ? [{ resource, schema: body.schema, record: body.example }]
      : [];
  });
  return operations.flatMap((operation) => {
    if (operation.name === 'POST /api/jobs')
      return jobTypes.items
        .filter(({ createdOnlyBy }) => createdOnlyBy === null)
        .map(({ name, payloadSchema }) =>
          narrow(operation, name, { payload: payloadSchema }, (payload) => ({
            type: name,
            payload,
          })),
        );
    if (operation.name === 'POST /api/auth/providers')
      return kinds.items.map(({ kind, configSchema }) =>
        narrow(operation, kind, { config: configSchema }, (config) => ({
          kind,
          name: 'Company',
          config,
        })),
      );
    if (operation.name === 'POST /api/validation/inventory')
      return resources.map(({ resource, schema, record }) =>
        narrow(operation, resource, { record: schema }, () => ({
          resource,
          operation: 'create',
          record,
        })),
      );
    return [];
  });
}

/** The operation with the schema of one field filled in; `example` makes a body from a sample of the field. */
function narrow(
  operation: Operation,
  choice: string,
  field: Readonly<Record<string, Schema>>,
  example: (sample: unknown) => object,
): Operation {
  const [schema = {}] = Object.values(field);
  return {
    ...operation,
    name: `${operation.name} (${choice})`,
    parameters: [],
    body: operation.body && {
      ...operation.body,
      schema: { type: 'object', properties: field },
      example: example(sampleOf(schema)),
    },
  };
}
