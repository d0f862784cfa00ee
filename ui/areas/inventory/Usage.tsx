import type { Schemas } from '../../app/api.ts';
import { formatUsage } from './amounts.ts';
import classes from './Inventory.module.css';

type Props = { usage: Pick<Schemas['PrefixUsage'], 'percent' | 'used'> };

/** A prefix from here on is nearly full. */
const NEARLY_FULL = 90;

/** How much of a prefix is used, as a bar with its number. */
export function UsageBar({ usage }: Props) {
  const { percent } = usage;
  return (
    <span className={classes.usage} data-full={percent >= NEARLY_FULL || undefined}>
      <svg
        className={classes.bar}
        viewBox="0 0 100 10"
        preserveAspectRatio="none"
        aria-hidden="true"
      >
        <rect className={classes.barAll} width="100" height="10" />
        <rect className={classes.barUsed} width={Math.min(100, percent)} height="10" />
      </svg>
      <span className={classes.percent}>{formatUsage(usage)}</span>
    </span>
  );
}
