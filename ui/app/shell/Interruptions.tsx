import { Button, Group, Loader, Stack, Text, Title } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import { canAnswer, useHealth } from '../health.ts';
import classes from './Interruptions.module.css';

const PATIENCE_MS = 500;
const RETRY_MS = 2_000;

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

/** Tries again by itself as soon as the server works, with pauses if that is not the reason. */
function useRetry(onRetry: () => void): void {
  const health = useHealth();
  const works = health !== undefined && canAnswer(health.outage);
  const retry = useRef(onRetry);
  useEffect(() => void (retry.current = onRetry));
  useEffect(() => {
    if (!works) return undefined;
    const timer = setInterval(() => retry.current(), RETRY_MS);
    return () => clearInterval(timer);
  }, [works]);
}

/** The server cannot work now, so not even the sign-in page makes sense. */
export function Unreachable({ detail, onRetry }: { detail: string; onRetry: () => void }) {
  useRetry(onRetry);
  return (
    <main className={classes.middle}>
      <Stack gap="sm" maw={440}>
        <Title order={1}>Holdfast is not available</Title>
        <Text role="alert">{detail}</Text>
        <Text>This page continues when it is back.</Text>
        <Group>
          <Button onClick={onRetry}>Try again</Button>
        </Group>
      </Stack>
    </main>
  );
}
