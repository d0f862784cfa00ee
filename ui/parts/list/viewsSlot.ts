import { createContext, use, type ComponentType } from 'react';
import type { ListSearch } from './search.ts';

export type ViewsProps = { search: ListSearch; onSearch: (search: ListSearch) => void };

/** The menu of saved views of a list. The frame provides it. */
const ViewsContext = createContext<ComponentType<ViewsProps> | undefined>(undefined);

export const ViewsMenuProvider = ViewsContext.Provider;

export const useViewsMenu = (): ComponentType<ViewsProps> | undefined => use(ViewsContext);
