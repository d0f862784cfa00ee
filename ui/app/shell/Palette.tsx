import { Loader } from '@mantine/core';
import { useDebouncedValue, useId } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useRouter } from '@tanstack/react-router';
import { useEffect, useState, type KeyboardEvent } from 'react';
import { Dialog } from '../../parts/Dialog.tsx';
import { Icon } from '../../parts/icons.tsx';
import { Exact } from '../../parts/Exact.tsx';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { answer, api, type Schemas } from '../api.ts';
import { useSession } from '../session/useSession.ts';
import { isOfText, matchingChoices, SEARCH_PAGE, type Choice } from './paletteChoices.ts';
import { useNavigationEntries } from './useNavigationEntries.ts';
import classes from './Palette.module.css';

const TYPING_MS = 120;
const PER_KIND = 5;

/** Finds pages and records: type, choose with the arrows, open with Enter. */
export default function Palette({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState('');
  const found = useFound(text);
  const choices = useChoices(text, found.data);
  const open = useOpen(onClose);
  const list = useId();
  const { current, point, restart, onKeyDown } = useChosen(choices, found.isOutdated, open);
  const type = (next: string) => {
    setText(next);
    restart();
  };
  return (
    <Dialog
      opened
      onClose={onClose}
      closeOnClickOutside
      withCloseButton={false}
      size="lg"
      padding={0}
      centered={false}
      yOffset="10vh"
      attributes={{ content: { 'aria-label': 'Search' } }}
    >
      <div className={classes.field}>
        <Icon name="search" size={18} />
        <input
          className={classes.input}
          role="combobox"
          aria-label="Search"
          aria-expanded={choices.length > 0}
          aria-controls={list}
          aria-autocomplete="list"
          aria-activedescendant={current >= 0 ? `${list}-${current}` : undefined}
          placeholder="A name, an address, a network, an id, or a page"
          autoComplete="off"
          spellCheck={false}
          data-autofocus
          value={text}
          onChange={(event) => type(event.currentTarget.value)}
          onKeyDown={onKeyDown}
        />
        {found.isFetching && <Loader size={14} aria-hidden />}
      </div>
      {found.error && <ProblemNote problem={found.error} retry={() => void found.refetch()} />}
      <Choices id={list} choices={choices} current={current} onOpen={open} onPoint={point} />
      <p role="status" className={classes.status}>
        {statusOf(text, choices, found)}
      </p>
    </Dialog>
  );
}

type ListProps = {
  id: string;
  choices: readonly Choice[];
  current: number;
  onOpen: (choice: Choice) => void;
  onPoint: (index: number) => void;
};

function Choices({ id, choices, current, onOpen, onPoint }: ListProps) {
  return (
    <div id={id} role="listbox" aria-label="Pages and records" className={classes.list}>
      {choices.map((choice, index) => (
        <div
          key={choice.key}
          id={`${id}-${index}`}
          role="option"
          aria-selected={index === current}
          ref={index === current ? scrollIntoView : undefined}
          className={classes.choice}
          onClick={() => onOpen(choice)}
          onMouseMove={() => onPoint(index)}
        >
          <span className={classes.kind}>{choice.kind}</span>
          <span className={classes.label}>
            <Exact text={choice.label} />
          </span>
          <span className={classes.detail}>
            <Exact text={choice.detail ?? ''} />
          </span>
        </div>
      ))}
    </div>
  );
}

const scrollIntoView = (element: HTMLElement | null): void =>
  element?.scrollIntoView({ block: 'nearest' });

/** What the service finds. What is on screen stays until the next answer. */
function useFound(text: string) {
  const wanted = text.trim();
  const [typed] = useDebouncedValue(wanted, TYPING_MS);
  const found = useQuery({
    queryKey: ['search', 'palette', typed],
    queryFn: ({ signal }) =>
      answer(api.GET('/api/search', { params: { query: { q: typed, limit: PER_KIND } }, signal })),
    enabled: typed !== '',
    placeholderData: keepPreviousData,
  });
  const isAnswered = typed === wanted && (found.error !== null || !found.isPlaceholderData);
  return { ...found, isOutdated: wanted !== '' && !(isAnswered && !found.isPending) };
}

/** The choice that Enter opens. Without one, it is the first for this text: Enter waits for the answer. */
function useChosen(
  choices: readonly Choice[],
  isOutdated: boolean,
  open: (choice: Choice | undefined) => void,
) {
  const [chosen, setChosen] = useState<number>();
  const [isAsked, setAsked] = useState(false);
  const current = Math.min(chosen ?? 0, choices.length - 1);
  const [first] = choices;
  const isWaiting = isOutdated && !(first && isOfText(first));
  useEffect(() => {
    if (isAsked && !isWaiting) open(first);
  }, [isAsked, isWaiting, first, open]);
  const onKeyDown = (event: KeyboardEvent) => {
    // These keys choose among the characters of an input method.
    if (event.nativeEvent.isComposing) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && choices.length > 0)
      setChosen((current + step + choices.length) % choices.length);
    else if (event.key !== 'Enter') return;
    else if (chosen === undefined) setAsked(true);
    else open(choices[current]);
    event.preventDefault();
  };
  return {
    current,
    point: setChosen,
    restart: () => {
      setChosen(undefined);
      setAsked(false);
    },
    onKeyDown,
  };
}

function statusOf(
  text: string,
  choices: readonly Choice[],
  { data, isFetching }: ReturnType<typeof useFound>,
): string {
  if (text.trim() === '' || isFetching) return '';
  const isFound = choices.some(({ kind }) => kind !== SEARCH_PAGE);
  if (!isFound) return 'Nothing found among what you may read.';
  const incomplete = data?.incomplete ?? [];
  if (incomplete.length > 0) return `Not searched in time: ${incomplete.join(', ')}.`;
  return (data?.more.length ?? 0) > 0 ? 'There are more matches. A longer text finds fewer.' : '';
}

function useOpen(onClose: () => void) {
  const { history } = useRouter();
  return (choice: Choice | undefined) => {
    if (choice === undefined) return;
    onClose();
    history.push(choice.path);
  };
}

function useChoices(text: string, found: Schemas['SearchResult'] | undefined): Choice[] {
  const { routesByPath } = useRouter();
  const { tenant } = useSession();
  const hasPage = (path: string) => path in routesByPath;
  return matchingChoices(text, useNavigationEntries(), found, { hasPage, tenant });
}
