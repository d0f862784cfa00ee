import { createContext, use, type ReactNode } from 'react';
import type { ListSearch } from './search.ts';

export type ViewsProps = { search: ListSearch; onSearch: (search: ListSearch) => void };

/** Makes the menu of saved views of a list. The frame provides it. */
type RenderViews = (props: ViewsProps) => ReactNode;

const ViewsContext = createContext<RenderViews>(() => null);

export const ViewsMenuProvider = ViewsContext.Provider;

export const useViewsMenu = (): RenderViews => use(ViewsContext);
