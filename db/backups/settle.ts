import { quoted, type Ask } from './catalog.ts';
import { diffOf, loaded, type RestorePlan } from './differences.ts';

/** What follows from a swap beyond its tables: schedules whose mirrors in Temporal must be brought in line. */
export type Followed = {
  schedules: { id: string; gone: boolean }[];
  sessionsEnded: number;
  jobsEnded: number;
};

/** What a job is told that had not ended when its backup was made: whether it did afterwards, nobody knows. */
const NOT_ENDED = JSON.stringify({
  code: 'restored',
  message:
    'The job had not ended when the backup was made, and was restored without being run again',
});

/** Jobs that come back without an end get one: to run them again could do twice what was done meanwhile. */
export const endJobs = (where: string): string =>
  `UPDATE public.jobs AS t SET status = 'failed', error = '${NOT_ENDED}', finished_at = now(), updated_at = now(), version = version + 1
   WHERE t.status IN ('queued', 'running') AND ${where} RETURNING 1`;

/** Deliveries that come back and wait are made by jobs of their own. */
export const freeDeliveries = (where: string): string =>
  `UPDATE public.deliveries AS t SET job_id = NULL, under_way = false WHERE t.status = 'pending' AND ${where}`;

const ENDS = (from: string): string =>
  `INSERT INTO public.cable_ends (interface_id, cable_id) SELECT t.a_interface_id, t.id ${from} UNION ALL SELECT t.b_interface_id, t.id ${from}`;
const NO_HINTS = 'DELETE FROM public.free_hints';
const RIGHTS_CHANGED = 'UPDATE public.access_state SET version = version + 1';
const LAST_SEQUENCE =
  'UPDATE public.event_head SET sequence = greatest(sequence, (SELECT coalesce(max(sequence), 0) FROM public.events))';

/** Grants stand where their site or device stands, whichever of both was put back. */
const PLACES: readonly string[] = [
  `UPDATE public.grants AS g SET tenant_id = s.tenant_id FROM public.sites AS s WHERE g.level = 'site' AND g.site_id = s.id AND g.tenant_id <> s.tenant_id`,
  `UPDATE public.grants AS g SET tenant_id = v.tenant_id, site_id = v.site_id FROM public.devices AS v
   WHERE g.level = 'device' AND g.device_id = v.id AND (g.tenant_id, g.site_id) IS DISTINCT FROM (v.tenant_id, v.site_id)`,
];

/**
 * A prefix lies in the smallest one around it, whosever that is: after a tenant's were put back between those of others, this
 * is worked out again. Networks sort before what they contain, so one pass with the networks around it is enough.
 */
const PARENTS = `
  DO $$
  DECLARE
    found record;
    place text;
    ids text[];
    nets cidr[];
    depth integer := 0;
  BEGIN
    FOR found IN SELECT c.id, c.cidr, c.vrf_key, c.parent_prefix_id, p.cidr AS parent_cidr FROM public.prefixes AS c
      LEFT JOIN public.prefixes AS p ON p.id = c.parent_prefix_id AND p.vrf_key = c.vrf_key ORDER BY c.vrf_key, c.cidr, c.id
    LOOP
      IF found.vrf_key IS DISTINCT FROM place THEN
        place := found.vrf_key;
        depth := 0;
      END IF;
      WHILE depth > 0 AND NOT nets[depth] >> found.cidr LOOP depth := depth - 1; END LOOP;
      IF found.parent_cidr IS DISTINCT FROM (CASE WHEN depth > 0 THEN nets[depth] END) OR (found.parent_prefix_id IS NOT NULL AND found.parent_cidr IS NULL) THEN
        UPDATE public.prefixes SET parent_prefix_id = CASE WHEN depth > 0 THEN ids[depth] END WHERE id = found.id;
      END IF;
      depth := depth + 1;
      ids[depth] := found.id;
      nets[depth] := found.cidr;
    END LOOP;
  END $$`;

const inDiff = (plan: RestorePlan, name: string, change: string, key = 't.id'): string => {
  const planned = plan.tables.find(({ table }) => table.name === name);
  return planned
    ? `EXISTS (SELECT FROM ${diffOf(planned.table)} AS d WHERE d.id = ${key} AND d.change ${change})`
    : 'false';
};

/** Sessions of accounts that are gone, disabled or have another password now. */
async function endSessions(ask: Ask, plan: RestorePlan): Promise<number> {
  const gone = await ask(
    `DELETE FROM public.sessions AS t WHERE ${inDiff(plan, 'users', "= 'deleted'", 't.user_id')} RETURNING 1`,
  );
  const users = plan.tables.find(({ table }) => table.name === 'users');
  if (!users) return gone.length;
  const ended = await ask(
    `UPDATE public.sessions AS t SET ended_at = now(), end_reason = CASE WHEN s.enabled THEN 'password_change' ELSE 'disabled' END
     FROM ${loaded(plan.schema, users.table)} AS s JOIN public.users AS u ON u.id = s.id JOIN ${diffOf(users.table)} AS d ON d.id = s.id AND d.change = 'changed'
     WHERE t.user_id = s.id AND t.ended_at IS NULL AND (NOT s.enabled OR s.password_hash IS DISTINCT FROM u.password_hash) RETURNING 1`,
  );
  return gone.length + ended.length;
}

/**
 * Does what belongs to a swap: before its rows change what must be seen before, and after it what is worked out from them.
 */
export async function settleAfter(
  ask: Ask,
  plan: RestorePlan,
  swap: () => Promise<void>,
): Promise<Followed> {
  const has = (...names: string[]) =>
    plan.tables.some(
      ({ table, part }) =>
        names.includes(table.name) && (part !== 'referred' || table.section === 'inventory'),
    );
  const sessionsEnded = await endSessions(ask, plan);
  await swap();
  const cables = plan.tables.find(({ table }) => table.name === 'cables');
  if (cables) {
    await ask(
      `DELETE FROM public.cable_ends AS e USING ${diffOf(cables.table)} AS d WHERE e.cable_id = d.id`,
    );
    await ask(ENDS(`FROM public.cables AS t JOIN ${diffOf(cables.table)} AS d ON d.id = t.id`));
  }
  if (has('prefixes', 'ip_addresses', 'ip_ranges')) await ask(NO_HINTS);
  if (has('prefixes') && plan.extent.tenantId !== null) await ask(PARENTS);
  if (has('sites', 'devices', 'grants')) for (const place of PLACES) await ask(place);
  if (has('roles', 'grants', 'users')) await ask(RIGHTS_CHANGED);
  if (has('events')) await ask(LAST_SEQUENCE);
  if (has('audit_heads')) {
    // Seals that came back go before those that will be made.
    await ask(
      `UPDATE public.audit_heads AS h SET position = s.position, hash = s.hash FROM ${quoted(plan.schema)}.audit_heads AS s WHERE s.tenant_id = h.tenant_id AND s.position > h.position`,
    );
  }
  const jobsEnded = has('jobs')
    ? (await ask(endJobs(inDiff(plan, 'jobs', "= 'created'")))).length
    : 0;
  if (has('deliveries')) await ask(freeDeliveries(inDiff(plan, 'deliveries', "= 'created'")));
  if (has('webhooks')) {
    await ask(`UPDATE public.webhooks AS t SET cancel_before = now(), cancel_reason = 'webhook_disabled' WHERE NOT t.enabled AND t.deleted_at IS NULL AND ${inDiff(plan, 'webhooks', "= 'changed'")}
      AND EXISTS (SELECT FROM public.deliveries AS w WHERE w.webhook_id = t.id AND w.status = 'pending' AND w.reason IS NULL)`);
  }
  const schedules = plan.tables.find(({ table }) => table.name === 'schedules');
  if (!schedules) return { schedules: [], sessionsEnded, jobsEnded };
  await ask(
    `UPDATE public.schedule_runs AS r SET outcome = 'skipped', reason = 'deleted' FROM ${diffOf(schedules.table)} AS d WHERE d.id = r.schedule_id AND d.change = 'deleted' AND r.outcome = 'buffered'`,
  );
  const found = await ask<{ id: string; gone: boolean }>(
    `SELECT id, change = 'deleted' AS gone FROM ${diffOf(schedules.table)} ORDER BY id`,
  );
  return { schedules: found, sessionsEnded, jobsEnded };
}
