import { createRoute, lazyRouteComponent, redirect } from '@tanstack/react-router';
import { isRecordId, recordPath } from '../../parts/recordIds.ts';
import { frameRoute } from '../rootRoute.tsx';

/** Blanks around an id are from copying; ids that creators do not choose are lower case. */
function pastedId(typed: string): string {
  const id = typed.trim();
  return isRecordId(id.toLowerCase()) ? id.toLowerCase() : id;
}

/** The page of a record, whatever its kind: ids in logs and tickets open what they name. */
export const idRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/id/$id',
  staticData: { title: 'Record' },
  beforeLoad: ({ params: { id: typed } }) => {
    const id = pastedId(typed);
    const path = recordPath(id);
    // The pages of records are known by their paths only.
    if (isRecordId(id) && !path.startsWith('/id/'))
      throw redirect({ to: path as '/', replace: true });
    if (id !== typed) throw redirect({ to: '/id/$id', params: { id }, replace: true });
  },
  component: lazyRouteComponent(() => import('./RecordPage.tsx'), 'RecordPage'),
});
