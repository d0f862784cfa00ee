import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { frameRoute } from '../../app/rootRoute.tsx';
import { validateListSearch } from '../../parts/list/search.ts';
import { validateNewScheduleSearch } from './newScheduleSearch.ts';

const schedulesRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/schedules',
  validateSearch: validateListSearch,
  staticData: {
    title: 'Schedules',
    navigation: {
      label: 'Schedules',
      icon: 'calendar',
      order: 40,
      permissions: ['schedule:read'],
      key: 's',
    },
  },
  component: lazyRouteComponent(() => import('./SchedulesPage.tsx'), 'SchedulesPage'),
});

const newScheduleRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/schedules/new',
  validateSearch: validateNewScheduleSearch,
  staticData: { title: 'New schedule', needs: ['schedule:write'] },
  component: lazyRouteComponent(() => import('./NewSchedulePage.tsx'), 'NewSchedulePage'),
});

const scheduleRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/schedules/$scheduleId',
  validateSearch: validateListSearch,
  staticData: { title: 'Schedule' },
  component: lazyRouteComponent(() => import('./SchedulePage.tsx'), 'SchedulePage'),
});

const editScheduleRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/schedules/$scheduleId/edit',
  staticData: { title: 'Edit schedule', needs: ['schedule:write'] },
  component: lazyRouteComponent(() => import('./EditSchedulePage.tsx'), 'EditSchedulePage'),
});

export const scheduleRoutes = [
  schedulesRoute,
  newScheduleRoute,
  scheduleRoute,
  editScheduleRoute,
] as const;
