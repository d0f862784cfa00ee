import { MAX_IMPORT_BYTES } from '../../../../domain/inventory/importLimits.ts';

/** What a file is, as far as can be seen before it is sent. */
export type ChosenFile = {
  file: File;
  format: 'csv' | 'ndjson';
  /** The first line. */
  head: string;
  /** About how many rows it has: a text in quotes may have more lines. */
  rows: number;
};

const HEAD_BYTES = 65_536;
const LINE_FEED = 10;

/** The number of lines of a file that are not empty at its end. It is read in pieces. */
async function countLines(file: Blob): Promise<number> {
  const reader = file.stream().getReader();
  let lines = 0;
  let last = LINE_FEED;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return last === LINE_FEED ? lines : lines + 1;
    for (const byte of value) if (byte === LINE_FEED) lines += 1;
    last = value.at(-1) ?? last;
  }
}

const NDJSON = /\.(?:ndjson|jsonl|json)$/i;

/** Reads what is needed to say what a file is. Error: that of the browser, if it cannot be read. */
export async function readChosen(file: File): Promise<ChosenFile> {
  // The rows of a file that is refused for its size are not counted.
  const counted = file.slice(0, MAX_IMPORT_BYTES);
  const [start, lines] = await Promise.all([file.slice(0, HEAD_BYTES).text(), countLines(counted)]);
  const head = start.split('\n', 1)[0] ?? '';
  const isNdjson = NDJSON.test(file.name) || head.trimStart().startsWith('{');
  return {
    file,
    format: isNdjson ? 'ndjson' : 'csv',
    head,
    rows: Math.max(0, isNdjson ? lines : lines - 1),
  };
}

/** True for lines that say themselves which resource they are about. */
export function isOfMutations({ format, head }: ChosenFile): boolean {
  if (format === 'csv') return false;
  try {
    const line: unknown = JSON.parse(head);
    return typeof line === 'object' && line !== null && 'resource' in line && 'record' in line;
  } catch {
    return false;
  }
}
