import { Icon } from './icons.tsx';
import { statusDisplay, type Tone } from './statuses.ts';
import classes from './StatusBadge.module.css';

type Props = {
  /** A status of the API, such as `failed`. */
  status: string;
  /** What is shown instead of the name of the status. */
  label?: string | undefined;
  tone?: Tone | undefined;
  /** Without a background, for rows of a grid. */
  plain?: boolean;
};

/** A status as icon, text and colour: none of them is the only sign. */
export function StatusBadge({ status, label, tone, plain = false }: Props) {
  const display = statusDisplay(status);
  const isTurning = display.icon === 'loader';
  return (
    <span
      className={classes.badge}
      data-tone={tone ?? display.tone}
      data-plain={plain || undefined}
    >
      <span className={classes.icon} data-turning={isTurning || undefined}>
        <Icon name={display.icon} size={14} />
      </span>
      {label ?? display.label}
    </span>
  );
}
