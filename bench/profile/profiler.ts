import type { Profile } from './flames.ts';

/** Microseconds between samples. */
const INTERVAL = 250;

type Answer = { id?: number; result?: { profile?: Profile } };

/** Connects to the profiler of a process that was started with `--inspect`. */
export async function connectProfiler(port: number) {
  const targets = await fetch(`http://127.0.0.1:${port}/json/list`);
  const [target] = (await targets.json()) as { webSocketDebuggerUrl: string }[];
  const socket = new WebSocket(target?.webSocketDebuggerUrl ?? '');
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve);
    socket.addEventListener('error', reject);
  });
  const waiting = new Map<number, (answer: Answer) => void>();
  socket.addEventListener('message', ({ data }) => {
    const answer = JSON.parse(String(data)) as Answer;
    waiting.get(answer.id ?? 0)?.(answer);
    waiting.delete(answer.id ?? 0);
  });
  let sent = 0;
  const call = (method: string, params: object = {}): Promise<Answer> => {
    const id = ++sent;
    socket.send(JSON.stringify({ id, method, params }));
    return new Promise((resolve) => waiting.set(id, resolve));
  };
  await call('Profiler.enable');
  await call('Profiler.setSamplingInterval', { interval: INTERVAL });
  return {
    /** The profile of the main thread while `work` runs. */
    async record(work: () => Promise<unknown>): Promise<Profile> {
      await call('Profiler.start');
      await work();
      const { result } = await call('Profiler.stop');
      if (!result?.profile) throw new Error('The profiler returned no profile');
      return result.profile;
    },
    close: () => socket.close(),
  };
}
