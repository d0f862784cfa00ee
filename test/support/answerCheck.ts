import type { Answer } from '../../api/kit/answer.ts';
import type { Route } from '../../api/kit/route.ts';
import { compileCheck, type Check } from '../../platform/schemaCheck.ts';

/** Fails a request whose answer is not what its route declares: the test sees a 500. */
export function answerCheck(routes: readonly Route[]): (route: Route, answer: Answer) => void {
  const keyOf = (route: Route, status: number) => `${route.method} ${route.path} ${status}`;
  const declared = new Map(
    routes.flatMap((route) =>
      Object.entries(route.answers).map(
        ([status, schema]) => [keyOf(route, Number(status)), schema] as const,
      ),
    ),
  );
  // Made when first needed: most files see few of the answers.
  const checks = new Map<string, Check>();
  return (route, answer) => {
    const key = keyOf(route, answer.status);
    const schema = declared.get(key);
    if (schema === undefined) throw new Error(`${key} is not declared`);
    if (schema === null || answer.stream) return;
    const check = checks.get(key) ?? compileCheck(schema);
    checks.set(key, check);
    const errors = check(JSON.parse(JSON.stringify(answer.body)));
    if (errors.length > 0)
      throw new Error(`${key} answers against its schema: ${JSON.stringify(errors)}`);
  };
}
