/** A line of a text before and after: in both, only before, or only after. */
export type LineChange = { kind: 'same' | 'removed' | 'added'; text: string };

/** Beyond it, comparing costs more than a reader gains: everything is then removed and added. */
const MAX_EDITS = 600;

/**
 * The lengths that are reached with each number of edits, by diagonal (E. Myers, An O(ND) Difference
 * Algorithm, 1986); undefined when more than MAX_EDITS are needed.
 */
function traceOf(before: readonly string[], after: readonly string[]): Int32Array[] | undefined {
  const most = Math.min(before.length + after.length, MAX_EDITS);
  const offset = most + 1;
  const reach = new Int32Array(2 * most + 3);
  const trace: Int32Array[] = [];
  for (let edits = 0; edits <= most; edits += 1) {
    trace.push(reach.slice());
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      const left = reach[offset + diagonal - 1] ?? 0;
      const up = reach[offset + diagonal + 1] ?? 0;
      let x = diagonal === -edits || (diagonal !== edits && left < up) ? up : left + 1;
      while (x < before.length && x - diagonal < after.length && before[x] === after[x - diagonal])
        x += 1;
      reach[offset + diagonal] = x;
      if (x >= before.length && x - diagonal >= after.length) return trace;
    }
  }
  return undefined;
}

/** Walks a trace back from the end to the changes. */
function changesOf(
  before: readonly string[],
  after: readonly string[],
  trace: readonly Int32Array[],
): LineChange[] {
  const offset = Math.min(before.length + after.length, MAX_EDITS) + 1;
  const changes: LineChange[] = [];
  let x = before.length;
  let y = after.length;
  for (let edits = trace.length - 1; edits >= 0; edits -= 1) {
    const reach = trace[edits] ?? new Int32Array();
    const at = (diagonal: number) => reach[offset + diagonal] ?? 0;
    const diagonal = x - y;
    const isAdded =
      diagonal === -edits || (diagonal !== edits && at(diagonal - 1) < at(diagonal + 1));
    const fromX = edits === 0 ? 0 : isAdded ? at(diagonal + 1) : at(diagonal - 1) + 1;
    const sameFrom = edits === 0 ? 0 : fromX;
    while (x > sameFrom && y > 0 && x > 0) {
      x -= 1;
      y -= 1;
      changes.push({ kind: 'same', text: before[x] ?? '' });
    }
    if (edits === 0) break;
    if (isAdded) {
      y -= 1;
      changes.push({ kind: 'added', text: after[y] ?? '' });
    } else {
      x -= 1;
      changes.push({ kind: 'removed', text: before[x] ?? '' });
    }
  }
  return changes.reverse();
}

/** The lines of two texts as changes, with as few changes as possible. */
export function diffLines(before: readonly string[], after: readonly string[]): LineChange[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start])
    start += 1;
  let end = 0;
  while (
    end < before.length - start &&
    end < after.length - start &&
    before[before.length - 1 - end] === after[after.length - 1 - end]
  )
    end += 1;
  const old = before.slice(start, before.length - end);
  const now = after.slice(start, after.length - end);
  const same = (text: string): LineChange => ({ kind: 'same', text });
  const trace = traceOf(old, now);
  const middle = trace
    ? changesOf(old, now, trace)
    : [
        ...old.map((text): LineChange => ({ kind: 'removed', text })),
        ...now.map((text): LineChange => ({ kind: 'added', text })),
      ];
  return [
    ...before.slice(0, start).map(same),
    ...middle,
    ...before.slice(before.length - end).map(same),
  ];
}

export type DiffPart = { kind: 'lines'; lines: LineChange[] } | { kind: 'folded'; count: number };

/** Changes with `context` equal lines around them; longer runs of equal lines are folded. */
export function foldEqual(changes: readonly LineChange[], context = 3): DiffPart[] {
  const shown = changes.map(() => false);
  changes.forEach(({ kind }, at) => {
    if (kind === 'same') return;
    for (let near = at - context; near <= at + context; near += 1)
      if (near >= 0 && near < shown.length) shown[near] = true;
  });
  const parts: DiffPart[] = [];
  changes.forEach((change, at) => {
    const last = parts.at(-1);
    if (shown[at] === true) {
      if (last?.kind === 'lines') last.lines.push(change);
      else parts.push({ kind: 'lines', lines: [change] });
    } else if (last?.kind === 'folded') last.count += 1;
    else parts.push({ kind: 'folded', count: 1 });
  });
  // A fold of one line takes as much space as the line.
  return parts.map((part, index) =>
    part.kind === 'folded' && part.count === 1
      ? { kind: 'lines', lines: changes.slice(...single(parts, index)) }
      : part,
  );
}

const sizeOf = (part: DiffPart): number => (part.kind === 'lines' ? part.lines.length : part.count);

function single(parts: readonly DiffPart[], index: number): [number, number] {
  const at = parts.slice(0, index).reduce((sum, part) => sum + sizeOf(part), 0);
  return [at, at + 1];
}
