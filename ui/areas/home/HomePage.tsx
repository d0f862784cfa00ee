import { isReady, useHealth } from '../../app/health.ts';
import { useLiveRefresh } from '../../app/live.ts';
import { useSession } from '../../app/session/useSession.ts';
import { Bones } from '../../parts/Bones.tsx';
import { NoAccess } from '../../parts/NoAccess.tsx';
import { Time } from '../../parts/Time.tsx';
import { BrokenBlock } from './BrokenBlock.tsx';
import { ChangesBlock } from './ChangesBlock.tsx';
import { wellText, type Sight } from './findings.ts';
import { FirstSteps } from './FirstSteps.tsx';
import { NeedsYouBlock } from './NeedsYouBlock.tsx';
import { ProtectionBlock } from './ProtectionBlock.tsx';
import { NEXT_BACKUP_KEY } from './queries.ts';
import { SystemBlock } from './SystemBlock.tsx';
import { ToneIcon } from './ToneIcon.tsx';
import { useBroken, type Broken } from './useBroken.ts';
import { useNeedsYou, type NeedsYou } from './useNeedsYou.ts';
import { useProtection, type ProtectionRead } from './useProtection.ts';
import classes from './HomePage.module.css';

const WORKFLOW = ['workflow:read', 'workflow:write', 'workflow:approve'];
const CHANGES = ['event:read', 'inventory:read'];
/** Jobs and schedules may fail many times in a second. */
const FAILURES_MS = 3_000;

/** Reads again what an event may have changed. */
function useLiveBlocks({ details }: NeedsYou): void {
  useLiveRefresh(['workflow.*'], ['home', 'requests']);
  useLiveRefresh(['workflow.*'], ['approvals', 'request'], ({ subject }) =>
    details.has(subject.id),
  );
  useLiveRefresh(['job.failed'], ['home', 'failedJobs'], undefined, FAILURES_MS);
  useLiveRefresh(['webhook.*'], ['home', 'webhooks']);
  useLiveRefresh(
    ['schedule.skipped', 'schedule.failed'],
    ['home', 'missedRuns'],
    undefined,
    FAILURES_MS,
  );
  useLiveRefresh(['schedule.created', 'schedule.updated', 'schedule.deleted'], NEXT_BACKUP_KEY);
  useLiveRefresh(['backup.*'], ['home', 'backups']);
}

/** What waits for the reader, what is broken, how well the data is protected, and what has changed. */
export function HomePage() {
  const { canAnywhere, canEverywhere, hasNoRole } = useSession();
  const sight = (permission: string): Sight =>
    canEverywhere(permission) ? 'all' : canAnywhere(permission) ? 'some' : 'none';
  const needs = useNeedsYou(WORKFLOW.some(canAnywhere));
  const seen = {
    jobs: sight('job:read'),
    webhooks: sight('webhook:read'),
    schedules: sight('schedule:read'),
    backups: sight('backup:read'),
  };
  const broken = useBroken({
    jobs: seen.jobs !== 'none',
    webhooks: seen.webhooks !== 'none',
    schedules: seen.schedules !== 'none',
  });
  const protection = useProtection(seen);
  const health = useHealth();
  useLiveBlocks(needs);
  return (
    <div className={classes.page}>
      <h1 className={classes.title}>Home</h1>
      {hasNoRole && <NoAccess />}
      <div className={classes.columns}>
        <div className={classes.main}>
          {!hasNoRole && (
            <AllWell
              needs={needs}
              broken={broken}
              seen={seen}
              protection={protection}
              isReady={health !== undefined && isReady(health)}
            />
          )}
          <FirstSteps />
          <NeedsYouBlock needs={needs} />
          <BrokenBlock broken={broken} />
          <ChangesBlock
            isAllowed={CHANGES.every(canAnywhere)}
            seesAll={CHANGES.every(canEverywhere)}
          />
        </div>
        <aside className={classes.side} aria-label="Protection and system">
          <ProtectionBlock protection={protection} />
          <SystemBlock health={health} />
        </aside>
      </div>
    </div>
  );
}

type AllWellProps = {
  needs: NeedsYou;
  broken: Broken;
  seen: Parameters<typeof wellText>[0];
  protection: ProtectionRead;
  isReady: boolean;
};

/** One line, if nothing needs the reader and nothing is broken. */
function AllWell({ needs, broken, seen, protection, isReady }: AllWellProps) {
  const areRead = needs.isRead && broken.isRead && protection.isRead && isReady;
  const state = protection.state;
  const isProtected = state?.lastTone === 'good' && state.testedTone === 'good';
  const found =
    needs.decide.length +
    needs.own.length +
    broken.failures.length +
    broken.webhooks.length +
    broken.missed.length;
  const isLoading = [...needs.reads, ...broken.reads].some((read) => read.isLoading);
  if (found === 0 && isLoading) return <Bones rows={2} />;
  if (!areRead || found > 0) return null;
  const { tone, text } = wellText(seen, isProtected);
  return (
    <div className={classes.well} data-tone={tone}>
      {tone && <ToneIcon tone={tone} />}
      <span role="status">{text}</span>
      {broken.webhooksReadAt !== undefined && (
        <span className={classes.age}>
          Webhooks as of <Time value={broken.webhooksReadAt} format="relative" />
        </span>
      )}
    </div>
  );
}
