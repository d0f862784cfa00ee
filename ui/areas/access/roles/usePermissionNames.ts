import { useSession } from '../../../app/session/useSession.ts';
import type { Permission } from './roleQueries.ts';

/** All permissions that exist, in the order of the service: the session says where each is held. */
export const usePermissionNames = (): Permission[] =>
  Object.keys(useSession().summary.permissions) as Permission[];
