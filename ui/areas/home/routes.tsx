import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { frameRoute } from '../../app/rootRoute.tsx';

const homeRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/',
  staticData: {
    title: 'Home',
    navigation: { label: 'Home', icon: 'home', order: 0, key: 'h' },
  },
  component: lazyRouteComponent(() => import('./HomePage.tsx'), 'HomePage'),
});

export const homeRoutes = [homeRoute] as const;
