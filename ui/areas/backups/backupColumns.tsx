import { Actor } from '../../parts/Actor.tsx';
import { formatBytes } from '../../parts/format.ts';
import type { GridColumn } from '../../parts/grid/types.ts';
import { tenantColumn } from '../../parts/list/tenantColumn.tsx';
import { labelOf, personName, type Names } from '../../parts/names.ts';
import { RecordLink } from '../../parts/RecordLink.tsx';
import { StatusBadge } from '../../parts/StatusBadge.tsx';
import { Time } from '../../parts/Time.tsx';
import type { BackupSummary } from './backupQueries.ts';
import { keptText, retentionText, titleOf } from './backupText.ts';
import classes from './Backups.module.css';

const sizeText = ({ sizeBytes }: Pick<BackupSummary, 'sizeBytes'>): string =>
  sizeBytes === null ? '' : formatBytes(sizeBytes);

const contentsText = ({ mode, sections }: BackupSummary): string =>
  mode === 'full' ? 'Everything' : sections.join(', ');

/** Who made a backup, or which schedule. */
export function MadeBy({ backup, names }: { backup: BackupSummary; names: Names | undefined }) {
  const { scheduleId, createdBy } = backup;
  if (scheduleId !== null) return <RecordLink id={scheduleId} names={names} />;
  return <Actor id={createdBy} names={names} />;
}

const UNREADABLE = 'Cannot be read';

function Verified({ archiveError, verifiedAt }: BackupSummary) {
  if (archiveError !== null) return <span title={archiveError.message}>{UNREADABLE}</span>;
  return <Time value={verifiedAt} format="relative" />;
}

function Tested({ restoreTestedAt, status }: BackupSummary) {
  if (restoreTestedAt !== null) return <Time value={restoreTestedAt} format="relative" />;
  return status === 'completed' ? <span className={classes.muted}>Never</span> : <span>–</span>;
}

/** How far a backup can be relied on, and how long it is kept. */
const TRUST: readonly GridColumn<BackupSummary>[] = [
  {
    id: 'verified',
    header: 'Verified',
    width: 96,
    grow: 0,
    hideBelow: 900,
    cell: Verified,
    text: ({ archiveError, verifiedAt }) => (archiveError ? UNREADABLE : (verifiedAt ?? '')),
  },
  {
    id: 'tested',
    header: 'Test-restored',
    width: 136,
    grow: 0,
    hideBelow: 560,
    sort: { asc: 'restoreTestedAt', desc: '-restoreTestedAt' },
    cell: Tested,
    text: ({ restoreTestedAt }) => restoreTestedAt ?? '',
  },
  {
    id: 'kept',
    header: 'Kept as',
    width: 200,
    hideBelow: 1_000,
    cell: ({ keptAs }) => keptText(keptAs),
    text: ({ keptAs }) => keptText(keptAs),
  },
];

const OPTIONAL: readonly GridColumn<BackupSummary>[] = [
  {
    id: 'retention',
    header: 'Retention',
    width: 170,
    isOptional: true,
    cell: ({ retention }) => retentionText(retention),
    text: ({ retention }) => retentionText(retention),
  },
  {
    id: 'engine',
    header: 'Engine',
    width: 90,
    isOptional: true,
    cell: ({ engine }) => engine,
    text: ({ engine }) => engine,
  },
  {
    id: 'store',
    header: 'Store',
    width: 80,
    isOptional: true,
    cell: ({ store }) => store,
    text: ({ store }) => store,
  },
  {
    id: 'rows',
    header: 'Rows',
    width: 90,
    align: 'end',
    isOptional: true,
    cell: ({ rows }) => rows?.toLocaleString('en-US') ?? '',
    text: ({ rows }) => String(rows ?? ''),
  },
  {
    id: 'id',
    header: 'Id',
    width: 250,
    isOptional: true,
    cell: ({ id }) => <code>{id}</code>,
    text: ({ id }) => id,
  },
];

/** What a backup contains. */
const CONTENTS: readonly GridColumn<BackupSummary>[] = [
  {
    id: 'contents',
    header: 'Contents',
    width: 130,
    hideBelow: 700,
    cell: contentsText,
    text: contentsText,
  },
  {
    id: 'size',
    header: 'Size',
    width: 84,
    grow: 0,
    align: 'end',
    hideBelow: 640,
    sort: { asc: 'sizeBytes', desc: '-sizeBytes' },
    cell: sizeText,
    text: ({ sizeBytes }) => String(sizeBytes ?? ''),
  },
];

/** The columns of the list of backups. */
export const backupColumns = (names: Names): GridColumn<BackupSummary>[] => [
  {
    id: 'status',
    header: 'Status',
    width: 108,
    grow: 0,
    cell: ({ status }) => <StatusBadge status={status} />,
    text: ({ status }) => status,
  },
  {
    id: 'label',
    header: 'Label',
    width: 130,
    grow: 2,
    sort: { asc: 'label', desc: '-label' },
    cell: (backup) => <RecordLink id={backup.id} label={titleOf(backup)} />,
    text: ({ label }) => label,
  },
  {
    id: 'createdAt',
    header: 'Made',
    width: 116,
    grow: 0,
    hideBelow: 340,
    sort: { asc: 'createdAt', desc: '-createdAt' },
    cell: ({ snapshotAt, createdAt }) => <Time value={snapshotAt ?? createdAt} />,
    text: ({ snapshotAt, createdAt }) => snapshotAt ?? createdAt,
  },
  ...CONTENTS,
  ...TRUST,
  {
    id: 'madeBy',
    header: 'Made by',
    width: 120,
    hideBelow: 820,
    cell: (backup) => <MadeBy backup={backup} names={names} />,
    text: ({ scheduleId, createdBy }) =>
      scheduleId === null
        ? personName(names, createdBy)
        : (labelOf(names, scheduleId, 'schedules') ?? scheduleId),
  },
  tenantColumn(names, { width: 100, hideBelow: 1_100 }),
  ...OPTIONAL,
];
