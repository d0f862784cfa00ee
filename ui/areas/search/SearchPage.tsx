import { TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { useTitle } from '../../app/useTitle.ts';
import { Bones } from '../../parts/Bones.tsx';
import { Empty } from '../../parts/Empty.tsx';
import { Icon } from '../../parts/icons.tsx';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { Results } from './Results.tsx';
import { MAX_TEXT, searchable, searchQuery, type SearchPageSearch } from './search.ts';
import { useResultKeys } from './useResultKeys.ts';
import classes from './SearchPage.module.css';

const route = getRouteApi('/frame/search');

/** How long after the last key the search starts. */
const WAIT_MS = 150;

/** The text of the field, which is in the address a moment later. */
function useText({ q = '', kinds }: SearchPageSearch) {
  const navigate = useNavigate();
  const [text, setText] = useState(q);
  const [address, setAddress] = useState(q);
  const [sent, setSent] = useState(q);
  if (address !== q) {
    setAddress(q);
    // The address has changed by another way: back, the palette, a link.
    if (q !== sent) {
      setSent(q);
      setText(q);
    }
  }
  useEffect(() => {
    if (text === sent) return undefined;
    const timer = setTimeout(() => {
      setSent(text);
      const search = { q: text, ...(kinds !== undefined && { kinds }) };
      void navigate({ to: '/search', search, replace: true });
    }, WAIT_MS);
    return () => clearTimeout(timer);
  }, [text, sent, kinds, navigate]);
  return { text, setText };
}

/** Finds records of all kinds. An address leads to the networks that contain it. */
export function SearchPage() {
  const search = route.useSearch();
  const { q = '' } = search;
  const { text, setText } = useText(search);
  const { page, field, onKeyDown } = useResultKeys();
  const found = useQuery(searchQuery(search));
  useTitle(q === '' ? 'Search' : `${q} · Search`);
  const isAsked = searchable(q) !== '';
  return (
    <div ref={page} className={classes.page} onKeyDown={onKeyDown}>
      <h1 className={classes.title}>Search</h1>
      <TextInput
        ref={field}
        className={classes.field}
        size="sm"
        type="search"
        aria-label="Search records of all kinds"
        placeholder="Name, address, network, MAC address, serial number or id"
        leftSection={<Icon name="search" size={16} />}
        value={text}
        maxLength={MAX_TEXT}
        data-autofocus
        autoFocus
        autoComplete="off"
        spellCheck={false}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      {isAsked && found.error && (
        <ProblemNote
          problem={found.error}
          retry={() => void found.refetch()}
          hasData={found.data !== undefined}
        />
      )}
      {isAsked && found.isPending && <Bones rows={6} />}
      {isAsked && found.data && (
        <div aria-busy={found.isFetching}>
          <Results query={searchable(q)} kinds={search.kinds} result={found.data} />
        </div>
      )}
      {!isAsked && (
        <Empty
          kind="nothing"
          title="Search everything that you may read"
          detail="A name or a part of it, an address such as 10.1.2.3, a network, a MAC address, a serial number, an asset tag, or the id of any record."
        />
      )}
    </div>
  );
}
