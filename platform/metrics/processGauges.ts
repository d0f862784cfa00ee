import { Gauge, type Registry } from '@prometheus-io/client';

/** What this process is. */
export type ProcessInfo = { role: string; version: string };

type Slots = Readonly<Record<string, { held(): number }>>;
type Unread = { held(): number };
type ReadComponents = () => Promise<Readonly<Record<string, string>>>;

/** Registers the metrics of this process. Returns what sets how they are read. */
export function processGauges(registers: Registry[], { role, version }: ProcessInfo) {
  let slots: Slots = {};
  let unread: Unread | undefined;
  let readComponents: ReadComponents = () => Promise.resolve({});
  new Gauge({
    name: 'holdfast_build_info',
    help: '1, with version, role and version of Node of the process.',
    labelNames: ['version', 'role', 'node'] as const,
    registers,
  }).set({ version, role, node: process.version }, 1);
  new Gauge({
    name: 'holdfast_slots_held',
    help: 'Slots that callers hold in this process: open streams, exports and the like, by kind.',
    labelNames: ['kind'] as const,
    registers,
    collect() {
      for (const [kind, { held }] of Object.entries(slots)) this.set({ kind }, held());
    },
  });
  new Gauge({
    name: 'holdfast_unread_response_bytes',
    help: 'Bytes of large responses of this process that their clients have not read yet.',
    registers,
    collect() {
      this.set(unread?.held() ?? 0);
    },
  });
  new Gauge({
    name: 'holdfast_ready',
    help: '1 for each component that is ready, as /readyz shows it: postgres, temporal, worker.',
    labelNames: ['component'] as const,
    registers,
    async collect() {
      const components = await readComponents();
      for (const [component, state] of Object.entries(components))
        this.set({ component }, state === 'ready' ? 1 : 0);
    },
  });
  return {
    /** Sets of which slots the metrics show how many are held. */
    measureSlots: (all: Slots): void => void (slots = all),
    /** Sets what counts the bytes that clients have not read. */
    measureUnread: (bytes: Unread): void => void (unread = bytes),
    /** Sets how the states of the components are read when the metrics are. */
    measureComponents: (read: ReadComponents): void => void (readComponents = read),
  };
}
