import { createContext, use } from 'react';

/** Widths in pixels that the user has set, by the id of the column. */
export type Widths = Readonly<Record<string, number>>;

/** Where the widths of the columns of a list are kept. The frame provides it. */
export type WidthStore = {
  read: (list: string) => Widths;
  write: (list: string, widths: Widths) => void;
};

const NOWHERE: WidthStore = { read: () => ({}), write: () => undefined };

const WidthStoreContext = createContext(NOWHERE);

export const WidthStoreProvider = WidthStoreContext.Provider;

export const useWidthStore = (): WidthStore => use(WidthStoreContext);
