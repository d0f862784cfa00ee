import { Navigate } from '@tanstack/react-router';
import { usePermissions } from '../../parts/permissions.tsx';
import { ACCESS_VIEWS } from './accessViews.ts';

/** Leads to the first list of the area that the user may read. */
export function AccessIndexPage() {
  const { canAnywhere } = usePermissions();
  const first = ACCESS_VIEWS.find(({ permissions }) => permissions.some(canAnywhere));
  return first && <Navigate to={first.to} replace />;
}
