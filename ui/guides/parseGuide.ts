import { lexer, type Token, type Tokens } from 'marked';
import { textOf, type Block, type Guide, type Inline } from './guide.ts';

/** The part of an address after `#`, as forges make it of a heading. */
export const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-');

const ENTITIES: Readonly<Record<string, string>> = {
  '&amp;': '&',
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&#39;': "'",
};
const plain = (text: string): string =>
  text.replace(/&(?:amp|lt|gt|quot|#39);/g, (each) => ENTITIES[each] ?? each);

/**
 * Where a link of a guide leads: to another guide, to a part of this one, or to another site. Other files of the
 * repository are not served: undefined.
 */
export function targetOf(href: string): string | undefined {
  if (href.startsWith('https://') || href.startsWith('#')) return href;
  const guide = /^(?:\.\/)?([a-z-]+)\.md(#.*)?$/.exec(href);
  return guide ? `/help/${guide[1]}${guide[2] ?? ''}` : undefined;
}

function inlineOf(token: Token): Inline[] {
  switch (token.type) {
    case 'codespan':
      return [{ kind: 'code', text: plain((token as Tokens.Codespan).text) }];
    case 'strong':
    case 'em':
      return [{ kind: token.type, of: inlines((token as Tokens.Strong).tokens) }];
    case 'link': {
      const { href, tokens } = token as Tokens.Link;
      const to = targetOf(href);
      return to === undefined ? inlines(tokens) : [{ kind: 'link', to, of: inlines(tokens) }];
    }
    case 'br':
      return ['\n'];
    // Pictures and markup are left out.
    case 'image':
    case 'html':
      return [];
    default: {
      const { tokens, text } = token as Tokens.Text;
      return tokens ? inlines(tokens) : [plain(text)];
    }
  }
}

const inlines = (tokens: readonly Token[]): Inline[] => tokens.flatMap(inlineOf);

function blockOf(token: Token): Block[] {
  switch (token.type) {
    case 'heading': {
      const { depth, tokens } = token as Tokens.Heading;
      const of = inlines(tokens);
      return [{ kind: 'heading', level: depth, id: anchorOf(textOf(of)), of }];
    }
    case 'paragraph':
    case 'text': {
      const of = inlineOf({ ...token, type: 'text' });
      return of.length === 0 ? [] : [{ kind: 'text', of }];
    }
    case 'code':
      return [{ kind: 'code', text: (token as Tokens.Code).text }];
    case 'list': {
      const { ordered, items } = token as Tokens.List;
      return [{ kind: 'list', ordered, items: items.map((item) => blocks(item.tokens)) }];
    }
    case 'blockquote':
      return [{ kind: 'quote', of: blocks((token as Tokens.Blockquote).tokens) }];
    case 'table': {
      const { header, rows } = token as Tokens.Table;
      const cells = (row: readonly Tokens.TableCell[]) => row.map(({ tokens }) => inlines(tokens));
      return [{ kind: 'table', head: cells(header), rows: rows.map(cells) }];
    }
    default:
      return [];
  }
}

const blocks = (tokens: readonly Token[]): Block[] => tokens.flatMap(blockOf);

/** Reads a Markdown file. Its first heading is its title. */
export function parseGuide(markdown: string): Guide {
  const [first, ...others] = blocks(lexer(markdown));
  if (first?.kind !== 'heading' || first.level !== 1)
    throw new Error('A guide begins with its title');
  return { title: textOf(first.of), blocks: others };
}
