import { createContext, use } from 'react';
import type { Where } from './where.ts';

export type { Where };

/** What the user may do, as the service says. The session of the frame provides it. */
export type Permissions = {
  /** Whose permissions they are. */
  user: { username: string };
  /** Nobody has assigned a role to the user, who may therefore do nothing. */
  hasNoRole: boolean;
  can(permission: string, where?: Where): boolean;
  /** Whether the user holds the permission anywhere. */
  canAnywhere(permission: string): boolean;
  /** Whether the user holds it everywhere, so that nothing is left out of what it lets them see. */
  canEverywhere(permission: string): boolean;
  /** The sites and devices where the user holds it by itself. */
  heldAt(permission: string): readonly Where[];
  /** Why the service would not allow it, in words; undefined if it would. */
  whyNot(permission: string, where?: Where): string | undefined;
};

const PermissionsContext = createContext<Permissions>({
  user: { username: '' },
  hasNoRole: false,
  can: () => false,
  canAnywhere: () => false,
  canEverywhere: () => false,
  heldAt: () => [],
  whyNot: (permission) => `This needs the permission ${permission}.`,
});

export const PermissionsProvider = PermissionsContext.Provider;

export const usePermissions = (): Permissions => use(PermissionsContext);
