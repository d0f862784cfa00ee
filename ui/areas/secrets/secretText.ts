// The fields that are needed, without the types of the API: its client needs a browser.
type Entry = {
  action: string;
  outcome: string;
  before: object | null;
  after: object | null;
};

const field = (value: object | null, name: string): unknown =>
  value && (value as Readonly<Record<string, unknown>>)[name];

const listOf = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : []);

/** What a change has done to the pools: `pools ams, fra instead of ams`. */
function poolsText({ before, after }: Entry): string | undefined {
  const [old, present] = [listOf(field(before, 'pools')), listOf(field(after, 'pools'))];
  if (old.join() === present.join()) return undefined;
  return `pools ${present.join(', ') || 'none'} instead of ${old.join(', ') || 'none'}`;
}

/** The job that got the value, of an entry about a use. */
export function jobOf({ action, after }: Entry): string | undefined {
  const id = action === 'secret.use' ? field(after, 'jobId') : undefined;
  return typeof id === 'string' ? id : undefined;
}

const ACTIONS: Readonly<Record<string, string>> = {
  'secret.create': 'Created',
  'secret.delete': 'Deleted',
  'secret.reencrypt_secrets': 'Encrypted with another master key',
};

/** An entry of the audit log about a secret, in words. */
export function historyText(entry: Entry): string {
  const { action, outcome, before, after } = entry;
  if (outcome !== 'done') return `${action}: ${outcome}`;
  if (action === 'secret.use')
    return `Released to attempt ${String(field(after, 'attempt'))} in the pool ${String(field(after, 'pool'))}, of the job`;
  if (action !== 'secret.update') return ACTIONS[action] ?? action;
  const changes = [
    field(after, 'valueChanged') === true && 'value replaced',
    poolsText(entry),
    field(before, 'description') !== field(after, 'description') && 'description changed',
  ].filter((text) => typeof text === 'string');
  const text = changes.join('; ') || 'changed';
  return text.charAt(0).toUpperCase() + text.slice(1);
}
