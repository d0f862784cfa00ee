import { Fragment } from 'react';
import { exactParts, markText } from './exact.ts';
import classes from './Exact.module.css';

/** A text of others as it is: a character that cannot be seen, or that turns others around, is a mark. */
export function Exact({ text }: { text: string }) {
  // The same text has the same parts.
  return exactParts(text).map((part, index) =>
    typeof part === 'string' ? (
      <Fragment key={index}>{part}</Fragment>
    ) : (
      <span key={index} className={classes.mark} title={`${part.code} ${part.name}`}>
        {markText(part)}
      </span>
    ),
  );
}
