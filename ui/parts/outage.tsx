import { createContext, use, type ReactNode } from 'react';

const OutageContext = createContext(false);

/** Provides whether the frame says that the server cannot work now. */
export const OutageProvider = ({ value, children }: { value: boolean; children: ReactNode }) => (
  <OutageContext value={value}>{children}</OutageContext>
);

/** True while the frame says that the server cannot work now: parts of the page need not repeat it. */
export const useIsOutage = (): boolean => use(OutageContext);
