import { flattenTree, type TreeShape } from '../../../parts/grid/tree.ts';
import { labelOfField } from '../../../parts/format.ts';
import { usePrinting } from '../../../parts/usePrinting.ts';
import { formatUsage } from '../amounts.ts';
import { countOf, networkOf } from './networks.ts';
import { freeText } from './spaceRows.ts';
import type { Row } from './useSpaceTree.ts';
import classes from './Space.module.css';

type Props = { rows: readonly Row[] | undefined; shape: TreeShape<Row> };

/** The open part of the tree as a table that has all of its rows, for paper. */
export function PrintedTree({ rows, shape }: Props) {
  if (!usePrinting() || !rows) return null;
  return (
    <table className={classes.printed}>
      <thead>
        <tr>
          <th scope="col">Network</th>
          <th scope="col">Status</th>
          <th scope="col">Used</th>
        </tr>
      </thead>
      <tbody>
        {flattenTree(rows, shape).map(({ row, key, level }) => (
          <tr key={key}>
            <td style={{ paddingLeft: `${(level - 1) * 16}px` }}>{networkText(row)}</td>
            <td>{statusText(row)}</td>
            <td>{usedText(row)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function networkText(row: Row): string {
  if (row.kind === 'more') return '… more of them are not shown';
  if (row.kind === 'note') return row.text;
  return row.kind === 'prefix' ? row.prefix.cidr : row.cidr;
}

function statusText(row: Row): string {
  if (row.kind === 'more' || row.kind === 'note') return '';
  if (row.kind === 'free') return freeText(row);
  return row.prefix.status === null ? 'You may not read it' : labelOfField(row.prefix.status);
}

function usedText(row: Row): string {
  if (row.kind === 'prefix') return row.prefix.usage ? formatUsage(row.prefix.usage) : '';
  const block = row.kind === 'free' ? networkOf(row.cidr) : undefined;
  return block ? countOf(block) : '';
}
