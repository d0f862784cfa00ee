import classes from './Racks.module.css';

const SIZE = 6;

/** What the bands of a drawing are filled with; `id` distinguishes it from other drawings of a page. */
export function RackPatterns({ id }: { id: string }) {
  const tile = { width: SIZE, height: SIZE, patternUnits: 'userSpaceOnUse' } as const;
  return (
    <defs>
      <pattern id={`${id}-dotted`} {...tile}>
        <circle className={classes.ink} cx={SIZE / 2} cy={SIZE / 2} r="1.2" />
      </pattern>
      <pattern id={`${id}-rising`} {...tile}>
        <path className={classes.inkLine} d="M-1 1 1 -1M0 6 6 0M5 7 7 5" />
      </pattern>
      <pattern id={`${id}-crossed`} {...tile}>
        <path className={classes.inkLine} d="M0 6 6 0M0 0 6 6" />
      </pattern>
      <pattern id={`${id}-barred`} {...tile}>
        <path className={classes.inkLine} d="M0 2H6M0 5H6" />
      </pattern>
      <pattern id={`${id}-behind`} width="12" height="12" patternUnits="userSpaceOnUse">
        <path className={classes.hatch} d="M-3 3 3 -3M0 12 12 0M9 15 15 9" />
      </pattern>
    </defs>
  );
}
