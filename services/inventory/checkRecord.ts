import { createSchema, updateSchema, type Resource } from '../../domain/inventory/resource.ts';
import type { SchemaFindings } from '../../domain/inventory/planning.ts';
import { compileCheck, mayHaveMore, type SchemaCheck } from '../../platform/schemaCheck.ts';

/** Compiled on first use, because most processes use few of them, and once for a process. */
const compiled = new Map<object, SchemaCheck>();

/** Checks a record against the schema of its resource. */
export function checkRecord(
  resource: Resource,
  operation: 'create' | 'update',
  record: object,
): SchemaFindings {
  const schema = operation === 'create' ? createSchema(resource) : updateSchema(resource);
  const check = compiled.get(schema) ?? compileCheck(schema);
  compiled.set(schema, check);
  const errors = check(record);
  return { errors, isCut: mayHaveMore(record, errors) };
}
