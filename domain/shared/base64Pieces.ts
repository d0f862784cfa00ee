/** A piece of a value is this many characters in a row. */
const PIECE_CHARS = 6;

/** More pieces of all values together take too much memory: 16 MiB. */
const MAX_PIECES = 2 ** 20;

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

/** The value of each character, also in the alphabet for URLs; -1 for others. */
const DIGITS = new Int8Array(128).fill(-1);
for (let at = 0; at < ALPHABET.length; at++) DIGITS[ALPHABET.charCodeAt(at)] = at;
DIGITS['-'.charCodeAt(0)] = 62;
DIGITS['_'.charCodeAt(0)] = 63;

/** Drops the first character of a piece when the next one follows. */
const ALL_BUT_FIRST = 64 ** (PIECE_CHARS - 1);

/** Passes on each piece of a text as a number, with its end. */
function eachPiece(text: string, onPiece: (piece: number, end: number) => void): void {
  let piece = 0;
  let length = 0;
  for (let at = 0; at < text.length; at++) {
    const digit = DIGITS[text.charCodeAt(at)] ?? -1;
    length = digit === -1 ? 0 : length + 1;
    piece = digit === -1 ? 0 : (piece % ALL_BUT_FIRST) * 64 + digit;
    if (length >= PIECE_CHARS) onPiece(piece, at + 1);
  }
}

/**
 * The parts of the base64 of any text around a value that only the value determines, for the three positions that
 * it can have in a group of three bytes.
 */
const inBase64 = (value: string): string[] => {
  const bytes = Buffer.from(value);
  return [0, 1, 2].map((offset) => {
    const encoded = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64');
    return encoded.slice(
      Math.ceil((offset * 8) / 6),
      Math.floor(((offset + bytes.length) * 8) / 6),
    );
  });
};

/** The base64 of a value that is too short to have pieces, in both alphabets. */
export const shortBase64 = (value: string): string[] =>
  inBase64(value)
    .filter(({ length }) => length < PIECE_CHARS)
    .flatMap((form) => [form, form.replaceAll('+', '-').replaceAll('/', '_')]);

/**
 * Finds pieces of values in base64, wherever lines divide it and whatever surrounds the value. In a set of numbers with
 * open addressing, which takes a tenth of the memory of a `Set`.
 */
export function createBase64Pieces() {
  let table = new Float64Array(64).fill(-1);
  let count = 0;

  /** Where a piece is, or where it would be added. */
  function slotOf(piece: number): number {
    const mask = table.length - 1;
    let slot =
      (Math.imul(piece % 2 ** 32, 0x9e37_79b1) ^ Math.imul(piece / 2 ** 18, 0x85eb_ca6b)) >>> 8;
    slot &= mask;
    while (table[slot] !== -1 && table[slot] !== piece) slot = (slot + 1) & mask;
    return slot;
  }

  function insert(piece: number) {
    const slot = slotOf(piece);
    if (table[slot] === piece || count >= MAX_PIECES) return;
    table[slot] = piece;
    count++;
    if (count * 2 <= table.length) return;
    const all = table.filter((each) => each !== -1);
    table = new Float64Array(table.length * 2).fill(-1);
    for (const each of all) table[slotOf(each)] = each;
  }

  return {
    /** False if there are too many values, or they are too long. */
    add(value: string): boolean {
      for (const form of inBase64(value)) eachPiece(form, insert);
      return count < MAX_PIECES;
    },
    /** The intervals of a text with pieces of values, in order. */
    find(text: string): [start: number, end: number][] {
      const found: [start: number, end: number][] = [];
      if (count === 0) return found;
      eachPiece(text, (piece, end) => {
        if (table[slotOf(piece)] !== piece) return;
        const last = found.at(-1);
        if (last && end - PIECE_CHARS <= last[1]) last[1] = end;
        else found.push([end - PIECE_CHARS, end]);
      });
      return found;
    },
  };
}
