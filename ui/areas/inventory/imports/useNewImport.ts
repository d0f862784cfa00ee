import { useRef, useState } from 'react';
import { MAX_IMPORT_BYTES, maxRowsOf } from '../../../../domain/inventory/importLimits.ts';
import { formatCount, formatNumberOf } from '../../../parts/format.ts';
import type { Resource } from '../inventoryQueries.ts';
import { columnsProblem, headerCells, resourcesWith } from './columnsOfFile.ts';
import type { Options } from './ImportOptions.tsx';
import { isOfMutations, readChosen, type ChosenFile } from './readFile.ts';

/** What is wrong with a file before it is sent; undefined if nothing is. */
function fileProblem(
  { file, format, head, rows }: ChosenFile,
  resource: Resource | undefined,
  all: readonly Resource[],
): string | undefined {
  if (file.size > MAX_IMPORT_BYTES) return 'The file is larger than 32 MiB. Split it.';
  if (head.includes('\uFFFD')) return 'The text is not UTF-8. Save the file as UTF-8.';
  if (rows === 0) return 'The file has no rows.';
  if (format === 'ndjson' && head.trimStart().startsWith('['))
    return 'The file is a JSON list. Save it as NDJSON, with a record on each line.';
  if (format === 'ndjson' || resource === undefined) return undefined;
  return columnsProblem(headerCells(head), resource, all);
}

/** That a file seems to have more rows than these options allow; undefined if it does not. */
export function tooManyRows({ rows }: ChosenFile, options: Options): string | undefined {
  const most = maxRowsOf(options);
  if (rows <= most) return undefined;
  const what = options.dryRun ? 'a dry run' : 'an import';
  const together = options.mode === 'all' ? ' whose rows are written together' : '';
  return `The file has about ${formatNumberOf(rows, 'row')}, and ${what}${together} may have ${formatCount(most)}. Split it, or choose other options.`;
}

/** Why a file cannot be sent with these options; undefined if it can. */
function whyNotSend(
  chosen: ChosenFile | undefined,
  options: Options,
  problem: string | undefined,
): string | undefined {
  if (chosen === undefined) return 'Choose a file.';
  if (problem !== undefined) return 'The file cannot be imported.';
  if (options.resource === '' && !isOfMutations(chosen)) return 'Choose a resource.';
  // The number of rows of CSV is not exact, because a text in quotes may have more lines: the service decides.
  return chosen.format === 'ndjson' ? tooManyRows(chosen, options) : undefined;
}

/** The file that is chosen, the options, and what is wrong with them. */
export function useNewImport(given: string | undefined, all: readonly Resource[]) {
  const [chosen, setChosen] = useState<ChosenFile>();
  const [unreadable, setUnreadable] = useState<string>();
  const [options, setOptions] = useState<Options>({
    ...{ resource: given ?? '', mode: 'each', dryRun: true },
  });
  const change = (fields: Partial<Options>) => setOptions((old) => ({ ...old, ...fields }));
  const resource = all.find(({ name }) => name === options.resource);
  const problem = unreadable ?? (chosen && fileProblem(chosen, resource, all));

  // Large files are read for some seconds: only the one that was chosen last counts.
  const last = useRef<File>(undefined);
  async function choose(file: File): Promise<void> {
    last.current = file;
    setUnreadable(undefined);
    try {
      const read = await readChosen(file);
      if (last.current !== file) return;
      setChosen(read);
      // A file of mutations is one of several resources; other files may say it by their columns.
      const [only, ...others] =
        read.format === 'csv' ? resourcesWith(headerCells(read.head), all) : [];
      if (isOfMutations(read)) change({ resource: '' });
      else if (options.resource === '' && only && others.length === 0)
        change({ resource: only.name });
    } catch {
      if (last.current === file)
        setUnreadable('The browser cannot read the file. Choose it again.');
    }
  }

  return {
    chosen,
    choose: (file: File) => void choose(file),
    options,
    change,
    resource,
    problem,
    hint: chosen && tooManyRows(chosen, options),
    reason: whyNotSend(chosen, options, problem),
  };
}
