/** Runs `work` in a process whose clock is ahead. */
export async function withClockAhead<T>(ms: number, work: () => Promise<T>): Promise<T> {
  const RealDate = Date;
  globalThis.Date = class extends RealDate {
    constructor(...args: [] | [number | string | Date]) {
      super(...((args.length === 0 ? [RealDate.now() + ms] : args) as [number]));
    }
    static override now = () => RealDate.now() + ms;
  } as DateConstructor;
  try {
    return await work();
  } finally {
    globalThis.Date = RealDate;
  }
}
