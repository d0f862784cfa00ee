import { Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Navigate } from '@tanstack/react-router';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { readView } from './useViews.ts';
import { searchOf } from './viewSearch.ts';

/** Opens the list of a view with it. */
export function OpenView({ id }: { id: string }) {
  const { data, error, refetch } = useQuery({
    queryKey: ['views', 'of', id],
    queryFn: () => readView(id),
    retry: false,
  });
  if (data) return <Navigate to={data.list} search={searchOf(data, {})} replace />;
  return error ? (
    <ProblemNote problem={error} retry={() => void refetch()} />
  ) : (
    <Skeleton height={120} aria-label="The view is being read" />
  );
}
