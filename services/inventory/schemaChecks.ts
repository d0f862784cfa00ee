import { createSchema, updateSchema, type Resource } from '../../domain/inventory/resource.ts';
import { compileCheck, type SchemaCheck, type SchemaError } from '../../platform/schemaCheck.ts';

/**
 * Returns a function that checks a record against the schema of its resource. Schemas are compiled
 * on first use, because most processes use few of them.
 */
export function createSchemaChecks() {
  const compiled = new Map<string, SchemaCheck>();
  return (resource: Resource, operation: 'create' | 'update', record: object): SchemaError[] => {
    const key = `${resource.name}/${operation}`;
    const check =
      compiled.get(key) ??
      compileCheck(operation === 'create' ? createSchema(resource) : updateSchema(resource));
    compiled.set(key, check);
    return simplifyUnionErrors(check(record));
  };
}

/**
 * Simplifies the errors of fields with a union type, such as nullable fields and references. The
 * validator reports an error for every alternative of the union. This keeps errors of the value
 * itself, or else one error that lists the allowed types.
 */
function simplifyUnionErrors(errors: readonly SchemaError[]): SchemaError[] {
  const unions = new Set(
    errors.filter(({ code }) => code === 'anyOf').map(({ pointer }) => pointer),
  );
  const specific = errors.filter(
    ({ pointer, code, message }) =>
      !unions.has(pointer) || (code !== 'anyOf' && code !== 'type' && message !== 'must be null'),
  );
  const explained = new Set(specific.map(({ pointer }) => pointer));
  const unexplained = [...unions].filter((pointer) => !explained.has(pointer));
  return [...specific, ...unexplained.map((pointer) => typeError(pointer, errors))];
}

/** One error with the allowed types of a field, for example `must be string or null`. */
function typeError(pointer: string, errors: readonly SchemaError[]): SchemaError {
  const messages = errors
    .filter((error) => error.pointer === pointer && error.code === 'type')
    .map(({ message }) => message);
  const message = [...new Set(messages)].join(' or ').replaceAll(' or must be', ' or');
  return { pointer, code: 'type', message };
}
