import { createContext, use } from 'react';

/** Where something is or would be done. */
export type Where = {
  tenantId?: string | undefined;
  siteId?: string | null | undefined;
  deviceId?: string | null | undefined;
};

/** What the user may do, as the service says. The session of the frame provides it. */
export type Permissions = {
  can(permission: string, where?: Where): boolean;
  /** Whether the user holds the permission anywhere. */
  canAnywhere(permission: string): boolean;
  /** Why the service would not allow it, in words; undefined if it would. */
  whyNot(permission: string, where?: Where): string | undefined;
};

const PermissionsContext = createContext<Permissions>({
  can: () => false,
  canAnywhere: () => false,
  whyNot: (permission) => `This needs the permission ${permission}.`,
});

export const PermissionsProvider = PermissionsContext.Provider;

export const usePermissions = (): Permissions => use(PermissionsContext);
