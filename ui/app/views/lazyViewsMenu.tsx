import { lazyPart } from '../shell/lazyPart.tsx';
import type { ViewsProps } from '../../parts/list/viewsSlot.ts';

const Nothing = () => null;

const ViewsMenu = lazyPart(() => import('./ViewsMenu.tsx'), { Failed: Nothing });

/** The menu of saved views, which is loaded after the list. Without it the list is complete. */
export const lazyViewsMenu = (props: ViewsProps) => <ViewsMenu {...props} />;
