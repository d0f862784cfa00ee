import { createSchema, updateSchema, type Resource } from '../../domain/inventory/resource.ts';
import { compileCheck, type SchemaCheck, type SchemaError } from '../../platform/schemaCheck.ts';

/** Compiled on first use, because most processes use few of them, and once for a process. */
const compiled = new Map<object, SchemaCheck>();

/** Checks a record against the schema of its resource. */
export function checkRecord(
  resource: Resource,
  operation: 'create' | 'update',
  record: object,
): SchemaError[] {
  const schema = operation === 'create' ? createSchema(resource) : updateSchema(resource);
  const check = compiled.get(schema) ?? compileCheck(schema);
  compiled.set(schema, check);
  return check(record);
}
