/** A guide as the pages show it: what a Markdown file of `docs/` has, without any markup of its own. */
export type Guide = { title: string; blocks: Block[] };

export type Inline =
  | string
  | { kind: 'code'; text: string }
  | { kind: 'strong'; of: Inline[] }
  | { kind: 'em'; of: Inline[] }
  | { kind: 'link'; to: string; of: Inline[] };

export type Block =
  | { kind: 'heading'; level: number; id: string; of: Inline[] }
  | { kind: 'text'; of: Inline[] }
  | { kind: 'code'; text: string }
  | { kind: 'list'; ordered: boolean; items: Block[][] }
  | { kind: 'quote'; of: Block[] }
  | { kind: 'table'; head: Inline[][]; rows: Inline[][][] };

/** The text of a part of a guide. */
export const textOf = (parts: readonly Inline[]): string =>
  parts
    .map((part) =>
      typeof part === 'string' ? part : part.kind === 'code' ? part.text : textOf(part.of),
    )
    .join('');
