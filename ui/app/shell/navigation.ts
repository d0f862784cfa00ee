import type { IconName } from '../../parts/icons.tsx';

/** An entry of the rail. */
export type NavigationEntry = {
  label: string;
  icon: IconName;
  /** Entries are sorted by it. */
  order: number;
  /** Shown only to users who hold one of these permissions anywhere. */
  permissions?: readonly string[];
  /** After `g`, this key opens the page. */
  key: string;
  /** The number of requests that wait for the user is shown with it. */
  badge?: 'approvals';
};

declare module '@tanstack/react-router' {
  // An interface, since the declaration of the library is extended.
  // oxlint-disable-next-line typescript/consistent-type-definitions
  interface StaticDataRouteOption {
    /** Title of the document, unless the page sets its own. */
    title?: string;
    /** Without one of these permissions the page says so, and nothing else. Default: those of the rail. */
    needs?: readonly string[];
    /** The route is a page of the rail. */
    navigation?: NavigationEntry;
  }
}
