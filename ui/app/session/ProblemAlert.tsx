import { Alert, Code, Text } from '@mantine/core';
import type { Problem } from '../problem.ts';

type ShownProblem = Pick<Problem, 'title' | 'detail' | 'code'> &
  Partial<Pick<Problem, 'requestId' | 'retryAfterSeconds'>>;

/** Why something failed, with what support needs to find the request. */
export function ProblemAlert({ problem }: { problem: ShownProblem }) {
  const { title, detail, code, requestId, retryAfterSeconds } = problem;
  return (
    <Alert color="red" title={title} role="alert">
      {detail}
      {retryAfterSeconds !== undefined && ` Try again in ${retryAfterSeconds} s.`}
      <Text size="xs" mt={4}>
        <Code>{code}</Code>
        {requestId !== undefined && (
          <>
            {' '}
            request <Code>{requestId}</Code>
          </>
        )}
      </Text>
    </Alert>
  );
}
