/**
 * An OpenAPI document in which each reference is replaced by what it refers to. Keywords beside a
 * reference stay.
 */
export function dereference<T>(document: T): T {
  const resolved = new Map<string, unknown>();

  const targetOf = (reference: string): unknown =>
    reference
      .split('/')
      .slice(1)
      .reduce<unknown>(
        (node, step) => (node as Record<string, unknown> | undefined)?.[step],
        document,
      );

  function resolve(reference: string): unknown {
    if (resolved.has(reference)) return resolved.get(reference);
    const target = targetOf(reference);
    if (target === undefined) throw new Error(`${reference} does not exist`);
    // A schema that contains itself would never end.
    resolved.set(reference, {});
    const whole = walk(target);
    resolved.set(reference, whole);
    return whole;
  }

  function walk(node: unknown): unknown {
    if (Array.isArray(node)) return node.map(walk);
    if (typeof node !== 'object' || node === null) return node;
    const { $ref, ...rest } = node as Record<string, unknown>;
    const own = Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, walk(value)]));
    return typeof $ref === 'string' ? { ...(resolve($ref) as object), ...own } : own;
  }

  return walk(document) as T;
}
