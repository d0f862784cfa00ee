import { ICON_PATHS, type IconName } from './iconPaths.ts';

export type { IconName } from './iconPaths.ts';

type Props = {
  name: IconName;
  size?: number;
  /** Only for an icon without a text beside it. */
  label?: string;
};

/** An icon. It is decoration unless it has a label. */
export function Icon({ name, size = 16, label }: Props) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth={1.75}
      strokeLinecap="round"
      strokeLinejoin="round"
      {...(label === undefined ? { 'aria-hidden': true } : { role: 'img', 'aria-label': label })}
    >
      <path d={ICON_PATHS[name]} />
    </svg>
  );
}
