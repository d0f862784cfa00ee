import { TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, useRouterState } from '@tanstack/react-router';
import { useEffect, useMemo } from 'react';
import { useTitle } from '../../app/useTitle.ts';
import { textOf, type Guide } from '../../guides/guide.ts';
import { useTypedSearch } from '../../app/useTypedSearch.ts';
import { Empty } from '../../parts/Empty.tsx';
import { PageLink } from '../../parts/PageLink.tsx';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { Reading } from '../../parts/Reading.tsx';
import { Blocks } from './Blocks.tsx';
import { searched } from './searched.ts';
import { guideQuery } from './guides.ts';
import classes from './Help.module.css';

const route = getRouteApi('/frame/help/$guide');

const GLOSSARY = 'glossary';

/** A guide. The terms of the glossary can be searched. */
export function GuidePage() {
  const { guide: name } = route.useParams();
  const { data: guide, error, refetch } = useQuery(guideQuery(name));
  useTitle(guide?.title);
  if (error) return <ProblemNote problem={error} retry={() => void refetch()} />;
  if (guide === null)
    return (
      <Empty
        isPage
        kind="nothing"
        title={`There is no guide ${name}`}
        detail={<PageLink to="/help">All guides</PageLink>}
      />
    );
  return (
    <div className={classes.page}>
      <nav aria-label="Path" className={classes.path}>
        <PageLink to="/help">Guides</PageLink>
      </nav>
      <h1 className={classes.title}>{guide?.title ?? 'Guide'}</h1>
      {guide ? (
        <Content key={name} name={name} guide={guide} />
      ) : (
        <Reading height={400} label="Loading the guide" />
      )}
    </div>
  );
}

/** Brings the part of the guide into view that the address names. */
function useAnchor(guide: Guide): void {
  const hash = useRouterState({ select: ({ location }) => location.hash });
  useEffect(() => {
    if (hash !== '') document.getElementById(hash)?.scrollIntoView();
  }, [hash, guide]);
}

function Content({ name, guide }: { name: string; guide: Guide }) {
  const { q = '' } = route.useSearch();
  const navigate = route.useNavigate();
  const { text, type } = useTypedSearch(
    q,
    (next) => void navigate({ search: { q: next }, replace: true, resetScroll: false }),
  );
  useAnchor(guide);
  const blocks = useMemo(
    () => (name === GLOSSARY ? searched(guide.blocks, text) : guide.blocks),
    [name, guide, text],
  );
  const headings = guide.blocks.flatMap((block) =>
    block.kind === 'heading' && block.level === 2 ? [block] : [],
  );
  return (
    <div className={classes.body}>
      <div className={classes.content}>
        {name === GLOSSARY && (
          <TextInput
            label="Find a term"
            className={classes.find}
            value={text}
            onChange={({ currentTarget: { value } }) => type(value)}
            spellCheck={false}
          />
        )}
        <Blocks blocks={blocks} />
        {blocks.length === 0 && <Empty kind="filtered" title="No term has this text" />}
      </div>
      {headings.length > 1 && (
        <nav className={classes.contents} aria-label="On this page">
          <ul className={classes.names}>
            {headings.map(({ id, of }) => (
              <li key={id}>
                <PageLink className={classes.link} to="." hash={id} search={(old) => old}>
                  {textOf(of)}
                </PageLink>
              </li>
            ))}
          </ul>
        </nav>
      )}
    </div>
  );
}
