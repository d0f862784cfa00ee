import { FRAME_BYTES } from './format.ts';

/** Receives the rows of one source. */
export type RowSink = {
  /** Copies a piece of a row: `bytes` from `start` to `end`. */
  write(bytes: Buffer, start: number, end: number): void;
  /** The row is complete. */
  endRow(): void;
  /**
   * Undefined when the sink accepts more. Otherwise a promise that resolves when it does, or rejects
   * when the archive cannot be written.
   */
  accepted(): Promise<void> | undefined;
};

/** Passes the rows of a table, or of a part of it, to the sink. */
export type RowSource = (sink: RowSink) => Promise<void>;

const NEWLINE = 0x0a;

/** A source of pieces that consist of complete lines, each of which is a row. */
export const rowsOfLines =
  (pieces: AsyncIterable<Buffer>): RowSource =>
  async (sink) => {
    for await (const bytes of pieces) {
      let start = 0;
      for (let at = bytes.indexOf(NEWLINE); at !== -1; at = bytes.indexOf(NEWLINE, start)) {
        sink.write(bytes, start, at + 1);
        sink.endRow();
        start = at + 1;
        const accepted = sink.accepted();
        if (accepted) await accepted;
      }
    }
  };

/** Rows for one frame. `release` returns its memory. */
export type RowBlock = { bytes: Buffer; rows: number; release(): void };

/** Blocks of a source that are filled or wait to be written. */
const BLOCKS_PER_SOURCE = 3;

type Lane = {
  sink: RowSink;
  /** Emits what is collected. The lane can be used for the next table. */
  end(): void;
  /** The archive cannot be written: `accepted` rejects. */
  fail(error: unknown): void;
};
type FullBlock = RowBlock & { lane: symbol; endsInRow: boolean };

/**
 * Collects the rows of concurrent sources in blocks of at most `FRAME_BYTES` for `emit`. A block ends
 * with a row, unless a single row is larger; the blocks of such a row follow one another. Memory
 * is reused: allocating a megabyte outside the heap for each block triggers garbage collections.
 */
export function createRowBlocks(emit: (block: RowBlock) => void) {
  const full: FullBlock[] = [];
  /** The source that is in the middle of a row that is larger than a block. */
  let owner: symbol | undefined;

  function push(block: FullBlock): void {
    full.push(block);
    for (;;) {
      const at = full.findIndex(({ lane }) => owner === undefined || lane === owner);
      const [next] = at === -1 ? [] : full.splice(at, 1);
      if (!next) return;
      owner = next.endsInRow ? next.lane : undefined;
      emit(next);
    }
  }

  return { addLane: (): Lane => createLane(push) };
}

function createLane(push: (block: FullBlock) => void): Lane {
  const lane = Symbol('source');
  const free: Buffer[] = [];
  let [allocated, filled, rowStart, rows, isInLongRow] = [0, 0, 0, 0, false];
  let current = allocate();
  let waiting: PromiseWithResolvers<void> | undefined;
  let failure: { error: unknown } | undefined;

  function allocate(): Buffer {
    const reused = free.pop();
    if (reused) return reused;
    allocated += 1;
    return Buffer.allocUnsafeSlow(FRAME_BYTES);
  }

  const release = (memory: Buffer) => () => {
    free.push(memory);
    waiting?.resolve();
    waiting = undefined;
  };

  /** Emits the first `length` bytes of the block; what follows them starts the next one. */
  function flush(length: number, endsInRow: boolean): void {
    const [memory, rest] = [current, filled - length];
    current = allocate();
    memory.copy(current, 0, length, filled);
    push({ lane, bytes: memory.subarray(0, length), rows, endsInRow, release: release(memory) });
    [filled, rowStart, rows, isInLongRow] = [rest, 0, 0, endsInRow];
  }

  return {
    sink: {
      write(bytes, start, end) {
        for (let at = start; at < end;) {
          if (filled === FRAME_BYTES) flush(rowStart === 0 ? filled : rowStart, rowStart === 0);
          const copied = bytes.copy(current, filled, at, end);
          at += copied;
          filled += copied;
        }
      },
      endRow() {
        rows += 1;
        rowStart = filled;
        if (isInLongRow) flush(filled, false);
      },
      accepted() {
        if (failure) return Promise.reject(failure.error);
        if (free.length > 0 || allocated < BLOCKS_PER_SOURCE) return undefined;
        waiting ??= Promise.withResolvers();
        return waiting.promise;
      },
    },
    end() {
      if (filled > 0) flush(filled, false);
    },
    fail(error) {
      failure = { error };
      waiting?.reject(error);
    },
  };
}
