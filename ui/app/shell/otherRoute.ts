import { createRoute } from '@tanstack/react-router';
import { frameRoute } from '../rootRoute.tsx';
import { NotFoundPage } from './NotFoundPage.tsx';

/** Every other address, so that the frame stays around the page that says there is none. */
export const otherRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '$',
  staticData: { title: 'Page not found' },
  component: NotFoundPage,
});
