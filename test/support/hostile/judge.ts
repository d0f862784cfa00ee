import { compileCheck } from '../../../platform/schemaCheck.ts';
import type { OpenApiDocument, Operation } from './document.ts';
import type { Answer } from './exchange.ts';
import type { Finding } from './report.ts';

const PROBLEM_TYPE = 'application/problem+json';

/** Signs of a regular expression in a text for people. */
const REGULAR_EXPRESSION = /must match pattern|\\[dswx]|\[\^|\(\?[:=!]|[\])][*+?{]/;

/** What PostgreSQL refused: the request should have been, with the name of the field. */
const UNNAMED = 'A value contains a character that cannot be stored.';

/** Returns a function that finds what an answer to an operation has that is not documented. */
export function createJudge({ components }: OpenApiDocument) {
  const checkProblem = compileCheck(components.schemas.Problem);

  function judgeProblem(status: number, body: unknown): Finding[] {
    const errors = checkProblem(body);
    if (errors.length > 0)
      return [{ problem: 'problem does not match its schema', detail: JSON.stringify(errors) }];
    const problem = body as { status: number; detail: string; errors?: { message: string }[] };
    const messages = [problem.detail, ...(problem.errors ?? []).map(({ message }) => message)];
    if (problem.detail === UNNAMED)
      return [{ problem: 'PostgreSQL refused a value that no check did', detail: problem.detail }];
    const unreadable = messages.find((message) => REGULAR_EXPRESSION.test(message));
    return [
      ...(problem.status === status ? [] : [{ problem: 'problem has another status' }]),
      ...(unreadable === undefined
        ? []
        : [{ problem: 'a message is a regular expression', detail: unreadable }]),
    ];
  }

  function judgeBody(status: number, type: string, body: Buffer): Finding[] {
    if (!/[/+]json$/.test(type)) return [];
    try {
      const parsed: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
      return type === PROBLEM_TYPE ? judgeProblem(status, parsed) : [];
    } catch (error) {
      return [{ problem: 'the body is not JSON', detail: String(error) }];
    }
  }

  return (operation: Operation, answer: Answer): Finding[] => {
    if (answer.failure !== undefined) return [{ problem: answer.failure }];
    const { status, headers, body } = answer;
    const detail = body.toString().slice(0, 300);
    const found: Finding[] = [];
    // 502 says that an identity provider does not answer, which is true of those that are made up.
    if (status >= 500 && status !== 502) found.push({ problem: `status ${status}`, detail });
    if (headers['x-request-id'] === undefined) found.push({ problem: 'X-Request-Id is missing' });
    if (operation.hasCaller && !/\bno-store\b/.test(String(headers['cache-control'])))
      found.push({
        problem: 'Cache-Control is not no-store',
        detail: `${String(headers['cache-control'])}, with ${status}`,
      });
    const types = operation.responses.get(status);
    if (types === undefined)
      return [...found, { problem: `status ${status} is not declared`, detail }];
    const [type = ''] = String(headers['content-type'] ?? '').split(';');
    const isDeclared = type === '' ? body.length === 0 && types.length === 0 : types.includes(type);
    if (!isDeclared)
      found.push({
        problem: `content type "${type}" is not declared`,
        detail: `${status} has ${types.join(', ')}`,
      });
    return [...found, ...judgeBody(status, type, body)];
  };
}
