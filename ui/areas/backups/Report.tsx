import { useMemo, useState } from 'react';
import { Exact } from '../../parts/Exact.tsx';
import { formatCount } from '../../parts/format.ts';
import { labelOf, type Names } from '../../parts/names.ts';
import { EffectList } from '../../parts/plan/EffectList.tsx';
import type { Shown } from '../../parts/plan/effects.ts';
import { RecordLink } from '../../parts/RecordLink.tsx';
import { isRecordId } from '../../parts/recordIds.ts';
import { Section } from '../../parts/Section.tsx';
import type { RestoreRun } from './backupQueries.ts';
import { countsText, hasChanges } from './backupText.ts';
import { CountsTable } from './CountsTable.tsx';
import { countsByResource, effectOf, withAccounts } from './differences.ts';
import classes from './Backups.module.css';

type Named = RestoreRun & { included?: Names | undefined };

type Props = {
  run: Named;
  /** The restore has been made: the differences are what it has changed. */
  isDone?: boolean;
};

/** What a restore would change, or has changed: what prevents it first, then counts, then record by record. */
export function Report({ run, isDone = false }: Props) {
  const { errors, warnings, preview, included: names } = run;
  return (
    <div>
      <Findings title="What prevents the restore" tone="bad" findings={errors} names={names} />
      <Findings title="Warnings" tone="warning" findings={warnings} names={names} />
      {preview && (
        <Section title={isDone ? 'Changes' : 'Differences'} note={countsText(preview.counts)}>
          <CountsTable preview={preview} />
        </Section>
      )}
      {preview && hasChanges(preview.counts) && <Differences run={run} isDone={isDone} />}
    </div>
  );
}

type FindingsProps = {
  title: string;
  tone: 'bad' | 'warning';
  findings: RestoreRun['errors'];
  names: Names | undefined;
};

function Findings({ title, tone, findings, names }: FindingsProps) {
  if (findings.length === 0) return null;
  return (
    <Section title={title} note={formatCount(findings.length)}>
      <ul className={classes.findings} data-tone={tone}>
        {findings.map(({ code, message, key }, index) => (
          // The same may be found of several records without a key.
          <li key={`${code} ${key ?? ''} ${index}`}>
            <code>{code}</code> <Exact text={message} />
            {key !== null && isRecordId(key) && (
              <>
                {' '}
                (<RecordLink id={key} label={labelOf(names, key)} names={names} />)
              </>
            )}
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Differences({ run, isDone }: { run: Named; isDone: boolean }) {
  const { preview, included } = run;
  const [shown, setShown] = useState<Shown>({});
  const names = useMemo(() => withAccounts(included), [included]);
  const effects = useMemo(
    () => (preview?.differences ?? []).map((each) => effectOf(each, names, isDone)),
    [preview, names, isDone],
  );
  const counts = useMemo(
    () => (preview ? countsByResource(preview.tables, preview.differences) : {}),
    [preview],
  );
  return (
    <Section title="Record by record">
      <p className={classes.note}>
        The first 100 differences of each section that you may read. Values longer than 200
        characters are cut, and those of secrets are not shown.
      </p>
      {effects.length === 0 ? (
        <p className={classes.muted}>You may not read the records that differ.</p>
      ) : (
        <EffectList
          effects={effects}
          hidden={0}
          names={names}
          shown={shown}
          onShown={setShown}
          counts={counts}
        />
      )}
    </Section>
  );
}
