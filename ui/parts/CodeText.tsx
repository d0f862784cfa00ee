import { Fragment } from 'react';
import { Exact } from './Exact.tsx';

/** A text of a schema, with what is between backticks as code. */
const CodeText = ({ text }: { text: string }) =>
  text
    .split(/`([^`]+)`/)
    .map((part, at) => (
      <Fragment key={at}>{at % 2 === 1 ? <code>{part}</code> : <Exact text={part} />}</Fragment>
    ));

/** What a schema says about a field; nothing if it says nothing. */
export const codeText = (text: string | undefined) =>
  text === undefined || text === '' ? undefined : <CodeText text={text} />;
