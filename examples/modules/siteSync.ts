import { JobFailure, jobType, Type, type JobTools, type Mutation } from 'holdfast/job-type';

/** A site as the other system lists it. */
type ListedSite = { name: string; address?: string };

/**
 * Copies sites from another system: `HOLDFAST_JOB_TYPES=examples/modules/*.ts` adds this job type. It
 * creates sites that the inventory does not have, and updates the addresses of the others.
 */
export const siteSync = jobType({
  apiVersion: 1,
  name: 'acme.site-sync',
  summary: 'Copies sites from another system',
  // Who may create jobs may run it; it changes only what its caller may change.
  access: 'open',
  payload: Type.Object(
    {
      url: Type.String({ format: 'uri', description: 'Returns a JSON array of {name, address}.' }),
      token: Type.Optional(
        Type.String({ 'x-holdfast-secret': true, description: 'Sent as a bearer token.' }),
      ),
      dryRun: Type.Boolean({ default: true, description: 'Only report what would change.' }),
    },
    { additionalProperties: false },
  ),
  timeoutMs: 300_000,
  retry: { maxAttempts: 5 },
  async run({ url, token, dryRun }, { http, inventory, log, progress }) {
    const sites = await fetchSites(http, url, token);
    log('info', `${sites.length} sites`);
    const mutations: Mutation[] = [];
    for (const [i, site] of sites.entries()) {
      const mutation = await mutationFor(site, inventory);
      if (mutation) mutations.push(mutation);
      progress((90 * (i + 1)) / sites.length, site.name);
    }
    if (mutations.length === 0) return { changed: 0 };
    if (dryRun) {
      const { valid, changes } = await inventory.plan(mutations);
      for (const { action, label, fields } of changes)
        log('info', `${action} ${label}`, { fields });
      return { changed: 0, wouldChange: changes.length, valid };
    }
    const { changes, hiddenChanges } = await inventory.apply(mutations);
    return { changed: changes.length + hiddenChanges };
  },
});

async function fetchSites(
  http: JobTools['http'],
  url: string,
  token: string | undefined,
): Promise<ListedSite[]> {
  const headers: Record<string, string> = token ? { authorization: `Bearer ${token}` } : {};
  const { status, body, retryAfterMs } = await http.request({ url, headers });
  if (status !== 200)
    throw new JobFailure('site_list_failed', `The server answered ${status}`, {
      retryable: status === 429 || status >= 500,
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    });
  const sites: unknown = JSON.parse(body);
  if (!Array.isArray(sites) || sites.length > 1_000)
    throw new JobFailure('site_list_invalid', 'The answer is not an array of up to 1,000 sites', {
      retryable: false,
    });
  return sites as ListedSite[];
}

/** The change that a site needs, if any. */
async function mutationFor(
  { name, address }: ListedSite,
  inventory: JobTools['inventory'],
): Promise<Mutation | undefined> {
  const { items } = await inventory.list('sites', { where: { name }, limit: 1 });
  const [known] = items;
  const record = { name, ...(address !== undefined && { address }) };
  if (!known) return { resource: 'sites', operation: 'create', record };
  if (address === undefined || known.address === address) return undefined;
  const { id, version } = known;
  return { resource: 'sites', operation: 'update', record: { id, version, address } };
}
