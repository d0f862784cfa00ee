import { Skeleton } from '@mantine/core';

/** What is shown instead of something that is being read; `label` says what. */
export function Reading({ height, label }: { height: number; label: string }) {
  return <Skeleton height={height} role="status" aria-busy="true" aria-label={label} />;
}
