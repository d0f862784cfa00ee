import { Dialog } from '../../../parts/Dialog.tsx';
import { Exact } from '../../../parts/Exact.tsx';
import { formatCount } from '../../../parts/format.ts';
import { Icon } from '../../../parts/icons.tsx';
import { nounOf } from '../../../../domain/shared/nouns.ts';
import { RecordLink } from '../../../parts/RecordLink.tsx';
import { StatusBadge } from '../../../parts/StatusBadge.tsx';
import type { ImportRow } from './importQueries.ts';
import { outcomeLabel } from './importText.ts';
import { findingsOf, type Finding } from './rowFindings.ts';
import classes from './Imports.module.css';

type Props = { row: ImportRow | undefined; dryRun: boolean; onClose: () => void };

/** The findings of a row. */
export function RowDialog({ row, dryRun, onClose }: Props) {
  return (
    <Dialog
      opened={row !== undefined}
      onClose={onClose}
      title={row ? `Line ${formatCount(row.line)}` : ''}
      size="lg"
      closeOnClickOutside
    >
      {row && <Content row={row} dryRun={dryRun} />}
    </Dialog>
  );
}

function Content({ row, dryRun }: { row: ImportRow; dryRun: boolean }) {
  const { outcome, id, label, resource } = row;
  const findings = findingsOf(row);
  return (
    <>
      {outcome !== null && <StatusBadge status={outcome} label={outcomeLabel(outcome, dryRun)} />}{' '}
      {id === null ? (
        <Exact text={label ?? ''} />
      ) : (
        <RecordLink id={id} label={label ?? undefined} kind={resource ?? undefined} />
      )}
      <ul className={classes.findings}>
        {findings.map((finding, at) => (
          <Item key={`${at} ${finding.code}`} finding={finding} />
        ))}
      </ul>
      {findings.length === 0 && <p className={classes.muted}>No errors, conflicts or warnings.</p>}
    </>
  );
}

function Item({ finding: { kind, field, value, code, message, record } }: { finding: Finding }) {
  const isBad = kind !== 'warning';
  return (
    <li className={isBad ? classes.bad : classes.warning}>
      <Icon name={isBad ? 'alertTriangle' : 'info'} size={14} label={kind} />
      <span>
        {field !== '' && <code>{field}</code>} <Exact text={message} /> (<code>{code}</code>)
        {record && (
          <>
            {': '}
            <RecordLink
              id={record.id}
              kind={record.resource}
              label={`open the ${nounOf(record.resource, 1)}`}
            />
          </>
        )}
        {value !== null && (
          <span className={classes.value}>
            In the file:{' '}
            <code>
              <Exact text={value} />
            </code>
          </span>
        )}
      </span>
    </li>
  );
}
