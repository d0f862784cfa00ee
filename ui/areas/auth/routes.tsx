import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { rootRoute } from '../../app/rootRoute.tsx';
import { validateSignInSearch } from './signInSearch.ts';

const signInRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/sign-in',
  validateSearch: validateSignInSearch,
  staticData: { title: 'Sign in' },
  component: lazyRouteComponent(() => import('./SignInPage.tsx'), 'SignInPage'),
});

export const signInRoutes = [signInRoute] as const;
