import { Alert, Button, Checkbox } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useLive } from '../../app/live.ts';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RefusedNote } from '../../parts/RefusedNote.tsx';
import { Time } from '../../parts/Time.tsx';
import { Reading } from '../../parts/Reading.tsx';
import {
  runQuery,
  type Backup,
  type RestoreRun,
  type SectionInfo,
  type SectionName,
} from './backupQueries.ts';
import { canAccept, changingEvents, isEnded } from './backupText.ts';
import { Failure } from './Failure.tsx';
import { Report } from './Report.tsx';
import { RestoreButtons } from './RestoreButtons.tsx';
import type { RestoreSearch } from './restoreSearch.ts';
import { RunProgress } from './RunProgress.tsx';
import { Steps } from './Steps.tsx';
import { useStartPreview } from './useStartPreview.ts';
import classes from './Backups.module.css';

type Props = {
  backup: Backup;
  sections: readonly SectionInfo[];
  chosen: readonly SectionName[];
  jobId: string;
  /** The risk that nobody, or not the user, can sign in afterwards is accepted. */
  accepts: boolean;
  onChange: (search: RestoreSearch, replace?: boolean) => void;
};

/** The second step: what the restore would change. The third is the dialog that confirms it. */
export function PreviewStep(props: Props) {
  const { backup, jobId, onChange } = props;
  const { data: run, error, refetch } = useQuery(runQuery(backup.id, jobId));
  const [isConfirming, setConfirming] = useState(false);
  return (
    <div className={classes.report}>
      <Steps present={isConfirming ? 2 : 1} />
      {error && (
        <ProblemNote problem={error} retry={() => void refetch()} hasData={run !== undefined} />
      )}
      {!run && !error && <Reading height={200} label="Loading the preview" />}
      {run && !isEnded(run.status) && (
        <RunProgress
          jobId={jobId}
          status={run.status}
          progress={run.progress}
          text="The archive is being loaded and compared"
        />
      )}
      {run && isEnded(run.status) && (
        <Ended
          key={jobId}
          {...props}
          run={run}
          isConfirming={isConfirming}
          onConfirming={setConfirming}
        />
      )}
      {(!run || !isEnded(run.status)) && (
        <div className={classes.buttons}>
          <Button variant="default" onClick={() => onChange({ preview: undefined })}>
            Other sections
          </Button>
        </div>
      )}
    </div>
  );
}

type EndedProps = Props & {
  run: RestoreRun;
  isConfirming: boolean;
  onConfirming: (isConfirming: boolean) => void;
};

function Ended(props: EndedProps) {
  const { run, backup, chosen, sections, accepts, onChange, isConfirming, onConfirming } = props;
  const compare = useStartPreview(backup, (search) => onChange(search, true));
  const again = (accepted: boolean) => compare.start({ sections: chosen, accepts: accepted });
  const hasChanged = useHasChanged(chosen);
  return (
    <>
      <RefusedNote problem={compare.error} />
      {run.status !== 'succeeded' && (
        <Failure
          title="The backup could not be compared"
          error={
            run.error ?? { code: run.status, message: 'The job of the preview was cancelled.' }
          }
        />
      )}
      {run.valid !== null && (
        <Age
          run={run}
          hasChanged={hasChanged}
          isBusy={compare.isBusy}
          onAgain={() => again(accepts)}
        />
      )}
      {(canAccept(run.errors) || accepts) && (
        <Checkbox
          size="xs"
          label="I accept that afterwards I, or all administrators, may be unable to sign in"
          checked={accepts}
          disabled={compare.isBusy}
          onChange={(event) => again(event.currentTarget.checked)}
        />
      )}
      <RestoreButtons
        backup={backup}
        run={run}
        sections={sections}
        chosen={chosen}
        accepts={accepts}
        isConfirming={isConfirming}
        onConfirming={onConfirming}
        onOthers={() => onChange({ preview: undefined, accept: undefined })}
      />
      <Report run={run} />
    </>
  );
}

/** Whether an event says that records of these sections have changed since the page was opened. */
function useHasChanged(chosen: readonly SectionName[]): boolean {
  const [hasChanged, setChanged] = useState(false);
  useLive(changingEvents(chosen), () => setChanged(true));
  return hasChanged;
}

type AgeProps = { run: RestoreRun; hasChanged: boolean; isBusy: boolean; onAgain: () => void };

/** With which records the backup was compared; the restore makes exactly these changes or none. */
function Age({ run, hasChanged, isBusy, onAgain }: AgeProps) {
  const again = (
    <Button variant="default" loading={isBusy} onClick={onAgain}>
      Compare again
    </Button>
  );
  if (hasChanged)
    return (
      <Alert color="yellow" title="Records have changed since this preview" role="status">
        <div className={classes.buttons}>
          <span>If they are among these sections, the restore is refused and nothing changes.</span>
          {again}
        </div>
      </Alert>
    );
  return (
    <div className={classes.bar}>
      <span>
        Compared <Time value={run.finishedAt} format="relative" />. The restore makes exactly these
        changes, or none if records have changed since.
      </span>
      {again}
    </div>
  );
}
