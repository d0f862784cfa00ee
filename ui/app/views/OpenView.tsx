import { useQuery } from '@tanstack/react-query';
import { Navigate } from '@tanstack/react-router';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { Reading } from '../../parts/Reading.tsx';
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
    <Reading height={120} label="Loading the view" />
  );
}
