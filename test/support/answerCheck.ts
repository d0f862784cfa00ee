import type { Answer } from '../../api/kit/answer.ts';
import type { Route } from '../../api/kit/route.ts';
import { compileCheck, type Check } from '../../platform/schemaCheck.ts';

/** Fails a request whose answer is not what its route declares: the test sees a 500. */
export function answerCheck(routes: readonly Route[]): (route: Route, answer: Answer) => void {
  const keyOf = (route: Route, status: number) => `${route.method} ${route.path} ${status}`;
  const checks = new Map<string, Check | null>(
    routes.flatMap((route) =>
      Object.entries(route.answers).map(([status, schema]): [string, Check | null] => [
        keyOf(route, Number(status)), schema && compileCheck(schema),
      ]),
    ),
  );
  return (route, answer) => {
    const key = keyOf(route, answer.status);
    const check = checks.get(key);
    if (check === undefined) throw new Error(`${key} is not declared`);
    if (check === null || answer.stream) return;
    const errors = check(JSON.parse(JSON.stringify(answer.body)));
    if (errors.length > 0) throw new Error(`${key} answers against its schema: ${JSON.stringify(errors)}`);
  };
}
