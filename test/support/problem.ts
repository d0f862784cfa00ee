import { expect } from '@jest/globals';
import type { ProblemBody, TestRequest } from './client.ts';

/** Expects an error response with this status and code, and resolves to its body. */
export async function expectProblem(
  request: TestRequest<unknown>,
  status: number,
  code: string,
): Promise<ProblemBody> {
  const problem = (await request.expect(status)) as ProblemBody;
  expect(problem.code).toBe(code);
  return problem;
}

/** Expects `invalid_request` at `pointer`, and resolves to the body. */
export async function expectInvalid(
  request: TestRequest<unknown>,
  pointer: string,
): Promise<ProblemBody> {
  const problem = await expectProblem(request, 400, 'invalid_request');
  expect((problem.errors ?? []).map((error) => error.pointer)).toContain(pointer);
  return problem;
}
