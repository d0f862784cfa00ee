import { Paper, Stack, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import { useTitle } from '../useTitle.ts';
import classes from './CardPage.module.css';

type Props = { title: string; heading?: string; children: ReactNode };

/** A page outside the frame: one card in the middle. */
export function CardPage({ title, heading = title, children }: Props) {
  useTitle(title);
  return (
    <main className={classes.page}>
      <Paper className={classes.card} withBorder p="lg">
        <Stack gap="md">
          <Title order={1}>{heading}</Title>
          {children}
        </Stack>
      </Paper>
    </main>
  );
}
