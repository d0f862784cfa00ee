import { Button, Group, Stack, Title } from '@mantine/core';
import type { ErrorComponentProps } from '@tanstack/react-router';
import { useEffect } from 'react';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { isMissingPart, reloadIfOutdated } from '../reload.ts';
import { useTitle } from '../useTitle.ts';

/** For a page that cannot be shown. The frame around it stays. */
export function PageError({ error, reset }: ErrorComponentProps) {
  useTitle('Error');
  useEffect(() => {
    if (isMissingPart(error)) void reloadIfOutdated();
  }, [error]);
  return (
    <Stack gap="sm" p="md">
      <Title order={1}>This page cannot be shown</Title>
      <ProblemNote problem={error} retry={reset} />
      <Group>
        <Button variant="default" onClick={() => location.reload()}>
          Reload the page
        </Button>
      </Group>
    </Stack>
  );
}
