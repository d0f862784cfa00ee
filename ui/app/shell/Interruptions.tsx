import { Button, Group, Loader, Stack, Text, Title } from '@mantine/core';
import { useEffect, useState } from 'react';
import classes from './Interruptions.module.css';

const PATIENCE_MS = 500;

/** While nothing is known yet. A quick start shows nothing. */
export function Starting() {
  const [isLong, setIsLong] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setIsLong(true), PATIENCE_MS);
    return () => clearTimeout(timer);
  }, []);
  return (
    <main className={classes.middle} aria-busy="true">
      {isLong && <Loader size="sm" aria-label="Loading" role="status" />}
    </main>
  );
}

/** The server does not answer, so not even the sign-in page makes sense. */
export function Unreachable({ detail, onRetry }: { detail: string; onRetry: () => void }) {
  return (
    <main className={classes.middle}>
      <Stack gap="sm" maw={440}>
        <Title order={1}>Holdfast cannot be reached</Title>
        <Text role="alert">{detail}</Text>
        <Group>
          <Button onClick={onRetry}>Try again</Button>
        </Group>
      </Stack>
    </main>
  );
}
