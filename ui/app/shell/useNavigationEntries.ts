import { useRouter } from '@tanstack/react-router';
import { useMemo } from 'react';
import { useSession } from '../session/useSession.ts';
import type { NavigationEntry } from './navigation.ts';

export type Entry = NavigationEntry & { to: string };

/** The entries of the rail, from the routes that have one, without those that the user may not read. */
export function useNavigationEntries(): Entry[] {
  const { routesById } = useRouter();
  const { canAnywhere } = useSession();
  return useMemo(
    () =>
      Object.values(routesById)
        .flatMap(({ fullPath, options: { staticData } }): Entry[] =>
          staticData?.navigation ? [{ ...staticData.navigation, to: fullPath }] : [],
        )
        .filter(({ permissions = [] }) => permissions.length === 0 || permissions.some(canAnywhere))
        .sort((one, other) => one.order - other.order),
    [routesById, canAnywhere],
  );
}
