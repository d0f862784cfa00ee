import { Fragment, type ReactNode } from 'react';
import { AppLink } from '../../parts/AppLink.tsx';
import { CopyButton } from '../../parts/CopyButton.tsx';
import { textOf, type Block, type Inline } from '../../guides/guide.ts';
import { titleOfGuide } from './guides.ts';
import classes from './Help.module.css';

/** Blocks of a guide. They are data: nothing of a guide becomes markup. */
export const Blocks = ({ blocks }: { blocks: readonly Block[] }) =>
  // A guide never changes while it is shown.
  blocks.map((block, at) => <Part key={at} block={block} />);

function Part({ block }: { block: Block }) {
  switch (block.kind) {
    case 'heading':
      return <Heading level={block.level} id={block.id} of={block.of} />;
    case 'text':
      return (
        <p className={classes.text}>
          <Text of={block.of} />
        </p>
      );
    case 'code':
      return <Code text={block.text} />;
    case 'quote':
      return (
        <blockquote className={classes.quote}>
          <Blocks blocks={block.of} />
        </blockquote>
      );
    case 'list':
      return <List ordered={block.ordered} items={block.items} />;
    case 'table':
      return <Table head={block.head} rows={block.rows} />;
  }
}

function Heading({ level, id, of }: { level: number; id: string; of: readonly Inline[] }) {
  const Tag = level <= 2 ? 'h2' : level === 3 ? 'h3' : 'h4';
  return (
    <Tag id={id} className={classes.heading} tabIndex={-1}>
      <Text of={of} />
    </Tag>
  );
}

/** A command or an example. It scrolls by itself, also with the keyboard. */
const Code = ({ text }: { text: string }) => (
  <div className={classes.code}>
    <pre tabIndex={0} aria-label="Example">
      <code>{text}</code>
    </pre>
    <span className={classes.copy}>
      <CopyButton value={text} label="Copy" />
    </span>
  </div>
);

function List({ ordered, items }: { ordered: boolean; items: readonly (readonly Block[])[] }) {
  const Tag = ordered ? 'ol' : 'ul';
  return (
    <Tag className={classes.list}>
      {items.map((item, at) => (
        <li key={at}>
          <Blocks blocks={item} />
        </li>
      ))}
    </Tag>
  );
}

function Table({ head, rows }: { head: readonly Inline[][]; rows: readonly Inline[][][] }) {
  return (
    <div className={classes.table} role="region" aria-label="Table" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {head.map((cell, at) => (
              <th key={at} scope="col">
                <Text of={cell} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((cells, row) => (
            <tr key={row}>
              {cells.map((cell, at) => (
                <td key={at}>
                  <Text of={cell} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A link that shows where it leads. */
const FILE = /^(?:docs\/)?([a-z-]+)\.md$/;

const Text = ({ of }: { of: readonly Inline[] }): ReactNode =>
  of.map((part, at) => <Fragment key={at}>{inline(part)}</Fragment>);

function inline(part: Inline): ReactNode {
  if (typeof part === 'string') return part;
  if (part.kind === 'code') return <code>{part.text}</code>;
  if (part.kind === 'strong')
    return (
      <strong>
        <Text of={part.of} />
      </strong>
    );
  if (part.kind === 'em')
    return (
      <em>
        <Text of={part.of} />
      </em>
    );
  const file = FILE.exec(textOf(part.of))?.[1];
  // In the repository a guide is a file; here it has a name.
  const text = file === undefined ? <Text of={part.of} /> : titleOfGuide(file);
  if (part.to.startsWith('/'))
    return (
      <AppLink className={classes.link} to={part.to}>
        {text}
      </AppLink>
    );
  const isOther = !part.to.startsWith('#');
  return (
    <a
      className={classes.link}
      href={part.to}
      {...(isOther && { target: '_blank', rel: 'noreferrer' })}
    >
      {text}
    </a>
  );
}
