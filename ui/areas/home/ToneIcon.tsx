import { Icon, type IconName } from '../../parts/icons.tsx';
import type { Tone } from './findings.ts';
import classes from './ToneIcon.module.css';

const ICONS: Readonly<Record<Tone, IconName>> = {
  good: 'circleCheck',
  warning: 'alertTriangle',
  bad: 'circleX',
};

const WORDS: Readonly<Record<Tone, string>> = {
  good: 'Good',
  warning: 'Needs attention',
  bad: 'Bad',
};

/** A state as icon and colour; its name is for those who see neither. */
export function ToneIcon({ tone }: { tone: Tone }) {
  return (
    <span className={classes.icon} data-tone={tone}>
      <Icon name={ICONS[tone]} size={15} label={WORDS[tone]} />
    </span>
  );
}
