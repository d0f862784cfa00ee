type Listener = () => Promise<void>;

const listeners = new Set<Listener>();

/** Calls `listener` after a test has failed and before what it has made is cleared away, in all files of this process. */
export const onTestFailure = (listener: Listener): void => void listeners.add(listener);

/** Errors of listeners say nothing about the test. */
export const reportTestFailure = async (): Promise<void> =>
  void (await Promise.allSettled([...listeners].map((listener) => listener())));
