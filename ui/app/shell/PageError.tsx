import { Button, Code, Group, Stack, Text, Title } from '@mantine/core';
import type { ErrorComponentProps } from '@tanstack/react-router';
import { toProblem } from '../problem.ts';
import { useTitle } from '../useTitle.ts';

/** For a page that cannot be shown. The frame around it stays. */
export function PageError({ error, reset }: ErrorComponentProps) {
  const { title, detail, code, requestId } = toProblem(error);
  useTitle(title);
  return (
    <Stack gap="sm" p="md" align="flex-start" role="alert">
      <Title order={1}>{title}</Title>
      <Text>{detail}</Text>
      <Text size="sm" c="dimmed">
        <Code>{code}</Code>
        {requestId !== undefined && (
          <>
            {' '}
            request <Code>{requestId}</Code>
          </>
        )}
      </Text>
      <Group>
        <Button onClick={reset}>Try again</Button>
        <Button variant="default" onClick={() => location.reload()}>
          Reload the page
        </Button>
      </Group>
    </Stack>
  );
}
