import { createRoute, lazyRouteComponent, redirect } from '@tanstack/react-router';
import { isRecordId, recordPath } from '../../parts/recordIds.ts';
import { frameRoute } from '../rootRoute.tsx';

/** The page of a record, whatever its kind: ids in logs and tickets open what they name. */
export const idRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/id/$id',
  staticData: { title: 'Record' },
  beforeLoad: ({ params: { id } }) => {
    const path = recordPath(id);
    // The pages of records are known by their paths only.
    if (isRecordId(id) && !path.startsWith('/id/'))
      throw redirect({ to: path as '/', replace: true });
  },
  component: lazyRouteComponent(() => import('./RecordPage.tsx'), 'RecordPage'),
});
