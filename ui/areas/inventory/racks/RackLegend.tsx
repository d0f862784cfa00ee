import { useId } from 'react';
import { labelOfField } from '../../../parts/format.ts';
import { RackPatterns } from './RackPatterns.tsx';
import { patternOf, STATUSES, toneOf } from './rackStyle.ts';
import classes from './Racks.module.css';

const fillOf = (id: string, status: string): string | undefined => {
  const pattern = patternOf(status);
  return pattern === 'solid' || pattern === 'open' ? undefined : `url(#${id}-${pattern})`;
};

/** How devices of each status are drawn. */
export function RackLegend() {
  const id = useId();
  return (
    <ul className={classes.legend} aria-label="Legend">
      {STATUSES.map((status, index) => (
        <li key={status}>
          <svg width="14" height="12" aria-hidden="true" data-tone={toneOf(status)}>
            {index === 0 && <RackPatterns id={id} />}
            <rect className={classes.band} width="14" height="12" />
            <rect
              className={patternOf(status) === 'solid' ? classes.bandInk : undefined}
              width="14"
              height="12"
              fill={fillOf(id, status) ?? 'none'}
            />
            <rect className={classes.bandFrame} x="0.5" y="0.5" width="13" height="11" />
          </svg>
          {labelOfField(status)}
        </li>
      ))}
      <li>
        <svg width="14" height="12" aria-hidden="true">
          <rect width="14" height="12" fill={`url(#${id}-behind)`} />
          <rect className={classes.bandFrame} x="0.5" y="0.5" width="13" height="11" />
        </svg>
        Mounted on the other face
      </li>
    </ul>
  );
}
