/** A profile of V8, as the inspector returns it: times are in microseconds. */
export type Profile = {
  nodes: readonly {
    id: number;
    callFrame: { functionName: string; url: string; lineNumber: number };
    children?: readonly number[];
  }[];
  samples: readonly number[];
  timeDeltas: readonly number[];
};

/** A function in its callers. `us` includes what it calls. */
type Frame = { label: string; us: number; callees: Map<string, Frame> };

const WIDTH = 1_200;
const ROW = 15;
const HEADER = 26;
/** Narrower frames are not drawn, nor what is deeper than this. */
const MIN_WIDTH = 2.5;
const MAX_DEPTH = 48;
const CHARACTER = 5.6;
/** Waiting for events is no work. */
const IDLE = new Set(['(idle)', '(program)']);
/** Between two samples there may have been another process: that is not the time of this one. */
const MAX_DELTA_US = 1_000;

/** The file of a function from the root of the repository, or its package. */
function moduleOf(url: string): string {
  const [, module] = /node_modules\/((?:@[^/]+\/)?[^/]+)(?!.*node_modules)/.exec(url) ?? [];
  return (
    module ??
    (url.startsWith('node:')
      ? url
      : url.replace(
          /^.*?\/(?=(?:api|services|domain|db|platform|temporal|activities|processes)\/)/,
          '',
        ))
  );
}

function labelOf({ functionName, url, lineNumber }: Profile['nodes'][number]['callFrame']): string {
  const name = functionName === '' ? '(anonymous)' : functionName;
  return url === '' ? name : `${name} ${moduleOf(url)}:${lineNumber + 1}`;
}

/** The time of each node itself. */
function ownTimes({ samples, timeDeltas }: Profile): Map<number, number> {
  const own = new Map<number, number>();
  for (const [i, id] of samples.entries())
    own.set(id, (own.get(id) ?? 0) + Math.min(timeDeltas[i] ?? 0, MAX_DELTA_US));
  return own;
}

/** Merges the nodes of a profile that are the same function in the same callers. */
function framesOf(profile: Profile): Frame {
  const own = ownTimes(profile);
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  function add(id: number, into: Frame): number {
    const node = nodes.get(id);
    if (!node || IDLE.has(node.callFrame.functionName)) return 0;
    const label = labelOf(node.callFrame);
    const frame = into.callees.get(label) ?? { label, us: 0, callees: new Map() };
    into.callees.set(label, frame);
    let us = own.get(id) ?? 0;
    for (const child of node.children ?? []) us += add(child, frame);
    frame.us += us;
    return us;
  }
  const root: Frame = { label: 'main thread', us: 0, callees: new Map() };
  const [first] = profile.nodes;
  for (const child of first?.children ?? []) root.us += add(child, root);
  return root;
}

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** Node in green, packages in blue, Holdfast in orange. */
function colourOf(label: string): string {
  if (/ (?:api|services|domain|db|platform|temporal|activities|processes)\//.test(label))
    return '#f4b26a';
  return / node:|^\(|^[^ ]+$/.test(label) ? '#b7d9a8' : '#a9c7e8';
}

/** Draws a profile as an SVG without scripts; times are for one of `per` operations. */
export function drawFlames(
  profile: Profile,
  { title, per }: { title: string; per: number },
): string {
  const root = framesOf(profile);
  const shapes: string[] = [];
  let deepest = 0;
  function draw(frame: Frame, x: number, depth: number): void {
    const width = (frame.us / root.us) * WIDTH;
    if (width < MIN_WIDTH || depth > MAX_DEPTH) return;
    deepest = Math.max(deepest, depth);
    const y = HEADER + depth * ROW;
    const ms = (frame.us / 1_000 / per).toFixed(3);
    const characters = Math.floor((width - 4) / CHARACTER);
    const text =
      characters < 4
        ? ''
        : `<text x="${(x + 2).toFixed(1)}" y="${y + 11}">${escaped(frame.label.slice(0, characters))}</text>`;
    shapes.push(
      `<g><title>${escaped(frame.label)}: ${ms} ms</title><rect x="${x.toFixed(1)}" y="${y}" width="${width.toFixed(1)}" height="${ROW - 1}" fill="${colourOf(frame.label)}"/>${text}</g>`,
    );
    let at = x;
    for (const callee of [...frame.callees.values()].sort((a, b) => b.us - a.us)) {
      draw(callee, at, depth + 1);
      at += (callee.us / root.us) * WIDTH;
    }
  }
  draw(root, 0, 0);
  const height = HEADER + (deepest + 1) * ROW + 6;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="monospace" font-size="9">`,
    `<rect width="${WIDTH}" height="${height}" fill="#fff"/>`,
    `<text x="4" y="16" font-size="12">${escaped(title)}: ${(root.us / 1_000 / per).toFixed(2)} ms of the main thread each; orange is Holdfast, blue its packages, green Node</text>`,
    ...shapes,
    '</svg>\n',
  ].join('\n');
}
