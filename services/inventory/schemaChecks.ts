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
    return check(record);
  };
}
