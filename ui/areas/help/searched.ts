import { textOf, type Block } from '../../guides/guide.ts';

/** The rows of tables with a text, below their headings. Without a text it is the whole guide. */
export function searched(blocks: readonly Block[], text: string): Block[] {
  const wanted = text.trim().toLowerCase();
  if (wanted === '') return [...blocks];
  let heading: Block[] = [];
  return blocks.flatMap((block): Block[] => {
    if (block.kind === 'heading') heading = [block];
    if (block.kind !== 'table') return [];
    const rows = block.rows.filter((cells) =>
      cells.some((cell) => textOf(cell).toLowerCase().includes(wanted)),
    );
    return rows.length === 0 ? [] : [...heading.splice(0), { ...block, rows }];
  });
}
