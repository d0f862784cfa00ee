import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { validateTokensSearch } from '../../app/account/tokensSearch.ts';
import { frameRoute, rootRoute } from '../../app/rootRoute.tsx';
import { validateSignInSearch } from './signInSearch.ts';

const signInRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/sign-in',
  validateSearch: validateSignInSearch,
  staticData: { title: 'Sign in' },
  component: lazyRouteComponent(() => import('./SignInPage.tsx'), 'SignInPage'),
});

const accountRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/account',
  validateSearch: validateTokensSearch,
  staticData: { title: 'Account' },
  component: lazyRouteComponent(() => import('./account/AccountPage.tsx'), 'AccountPage'),
});

export const signInRoutes = [signInRoute] as const;

export const accountRoutes = [accountRoute] as const;
