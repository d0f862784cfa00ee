/** Beyond it, a value that is shown whole is text and no tree: each line of a tree is several elements. */
const TREE_LINES = 2_000;
/** A tree indents: what is nested deeper would have no width left, which lines of text have. */
const TREE_DEPTH = 12;
const BLOCK_LINES = 200;
const INDENT = 2;

const deepest = (lines: readonly string[]): number =>
  lines.reduce((most, line) => Math.max(most, line.search(/\S/) / INDENT), 0);

/**
 * How a JSON value of any size is shown with nothing folded, cut or left out: as a tree (undefined), or as blocks of
 * lines, each of which is drawn when it comes into view.
 */
export function blocksOf(value: unknown): string[] | undefined {
  const lines = (JSON.stringify(value, null, INDENT) ?? 'null').split('\n');
  if (lines.length <= TREE_LINES && deepest(lines) <= TREE_DEPTH) return undefined;
  return Array.from({ length: Math.ceil(lines.length / BLOCK_LINES) }, (_, block) =>
    lines.slice(block * BLOCK_LINES, (block + 1) * BLOCK_LINES).join('\n'),
  );
}
