import { PageLink } from '../../parts/PageLink.tsx';
import { RecordLink } from '../../parts/RecordLink.tsx';
import { Time } from '../../parts/Time.tsx';
import { Block, Row, Rows } from './Block.tsx';
import { problemsOf } from './problems.ts';
import { ToneIcon } from './ToneIcon.tsx';
import type { ProtectionRead } from './useProtection.ts';
import classes from './links.module.css';

/** The last backup, the last one that a test restore has loaded, and the next one. */
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
                Last backup <RecordLink id={state.last.id} label={state.last.label} />
              </>
            ) : seesAll ? (
              'There is no backup'
            ) : (
              'No backup that you may see'
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
              'No backup has been test-restored'
            ) : (
              'No test restore that you may see'
            )}
          </Row>
          <Row end={state.next !== undefined && <Time value={state.next} format="relative" />}>
            <span className={classes.quiet}>
              {state.next === undefined
                ? `No backup ${seesAll ? 'is scheduled' : 'that you may see is scheduled'}`
                : 'Next scheduled backup'}
            </span>
          </Row>
        </Rows>
      )}
    </Block>
  );
}
