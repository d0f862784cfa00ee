import { PageLink } from '../../parts/PageLink.tsx';
import { RecordLink } from '../../parts/RecordLink.tsx';
import { Time } from '../../parts/Time.tsx';
import { Block, Row, Rows } from './Block.tsx';
import { problemsOf } from './problems.ts';
import { ToneIcon } from './ToneIcon.tsx';
import type { ProtectionRead } from './useProtection.ts';
import classes from './links.module.css';

/** The last full backup, the last one that a test restore has loaded, and the next one. */
export function ProtectionBlock({ protection }: { protection: ProtectionRead }) {
  const { isAllowed, seesAll, state, reads } = protection;
  if (!isAllowed) return null;
  return (
    <Block
      title="Protection"
      action={
        <PageLink to="/backups" className={classes.more}>
          All backups
        </PageLink>
      }
      problems={problemsOf(reads)}
      loading={!state}
    >
      {state && (
        <Rows label="Protection">
          <Row
            icon={state.lastTone && <ToneIcon tone={state.lastTone} />}
            end={
              state.last && (
                <Time value={state.last.snapshotAt ?? state.last.createdAt} format="relative" />
              )
            }
          >
            {state.last ? (
              <>
                Last full backup <RecordLink id={state.last.id} label={state.last.label} />
              </>
            ) : seesAll ? (
              'There is no full backup of the platform that can be restored'
            ) : (
              'No full backup that you may see'
            )}
          </Row>
          <Row
            icon={state.testedTone && <ToneIcon tone={state.testedTone} />}
            end={state.tested && <Time value={state.tested.restoreTestedAt} format="relative" />}
          >
            {state.tested ? (
              <>
                Last test restore of <RecordLink id={state.tested.id} label={state.tested.label} />
              </>
            ) : seesAll ? (
              'No full backup of the platform has been test-restored'
            ) : (
              'No test restore of a full backup that you may see'
            )}
          </Row>
          <Next protection={protection} />
        </Rows>
      )}
    </Block>
  );
}

/** The next full backup, if the reader may see schedules. */
function Next({ protection: { next, seesAllSchedules } }: { protection: ProtectionRead }) {
  if (next === undefined) return null;
  const none = `No full backup ${seesAllSchedules ? 'is' : 'that you may see is'} scheduled`;
  return (
    <Row end={next !== null && <Time value={next} format="relative" />}>
      <span className={classes.quiet}>{next === null ? none : 'Next scheduled full backup'}</span>
    </Row>
  );
}
