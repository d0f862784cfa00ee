import type { MapItem, MapMark, MapMarks, MapModel, MapNode } from './mapModel.ts';
import { onScreen, type Size, type View } from './mapView.ts';
import type { Rect } from './mapLayout.ts';

/** How prefixes of a status are drawn: no status has only a colour of its own. */
type Style = {
  line: string;
  fill: string;
  pattern: 'open' | 'none' | 'rising' | 'falling' | 'crossed' | 'dotted';
};

type MapStyle = ReturnType<typeof readMapStyle>;

const STYLES: Readonly<Record<string, { tone: string; pattern: Style['pattern'] }>> = {
  container: { tone: 'neutral', pattern: 'open' },
  active: { tone: 'active', pattern: 'none' },
  reserved: { tone: 'warning', pattern: 'rising' },
  deprecated: { tone: 'bad', pattern: 'crossed' },
};
const UNREADABLE = { tone: 'neutral', pattern: 'dotted' } as const;

/** The statuses in the order of the legend; the last is of prefixes that the user may not read. */
export const LEGEND = ['container', 'active', 'reserved', 'deprecated', 'unreadable'] as const;

export const styleOf = (status: string | null): (typeof STYLES)[string] =>
  (status === null ? undefined : STYLES[status]) ?? UNREADABLE;

const PATTERN_SIZE = 8;

function drawPattern(context: CanvasRenderingContext2D, pattern: Style['pattern']): void {
  const size = PATTERN_SIZE;
  context.beginPath();
  for (const shift of pattern === 'dotted' ? [] : [-size, 0, size]) {
    if (pattern !== 'falling') {
      context.moveTo(shift, size);
      context.lineTo(shift + size, 0);
    }
    if (pattern === 'rising') continue;
    context.moveTo(shift, 0);
    context.lineTo(shift + size, size);
  }
  if (pattern === 'dotted') context.rect(size / 2 - 1, size / 2 - 1, 1, 1);
  context.stroke();
}

/** A fill of one colour with a pattern of another, for a canvas with `ratio` pixels per CSS pixel. */
function fillOf({ line, fill, pattern }: Style, ratio: number): CanvasPattern | string {
  if (pattern === 'none' || pattern === 'open') return fill;
  const tile = document.createElement('canvas');
  tile.width = tile.height = PATTERN_SIZE * ratio;
  const context = tile.getContext('2d');
  if (!context) return fill;
  context.scale(ratio, ratio);
  context.fillStyle = fill;
  context.fillRect(0, 0, PATTERN_SIZE, PATTERN_SIZE);
  context.strokeStyle = line;
  context.lineWidth = 1;
  drawPattern(context, pattern);
  const made = context.createPattern(tile, 'repeat');
  made?.setTransform(new DOMMatrix().scale(1 / ratio));
  return made ?? fill;
}

/** Reads the colours of the theme from the page. */
function readMapStyle(element: Element, ratio: number) {
  const computed = getComputedStyle(element);
  const colour = (name: string) => computed.getPropertyValue(`--hf-${name}`).trim();
  const fills = new Map<string | null, { fill: CanvasPattern | string; line: string }>();
  const of = (status: string | null) => {
    const known = fills.get(status);
    if (known) return known;
    const { tone, pattern } = styleOf(status);
    const fill = pattern === 'open' ? computed.backgroundColor : colour(`${tone}-soft`);
    const style = { line: colour(tone), fill, pattern };
    const made = { fill: fillOf(style, ratio), line: style.line };
    fills.set(status, made);
    return made;
  };
  const unread = { line: colour('muted'), fill: 'transparent', pattern: 'falling' } as const;
  return {
    of,
    unread: fillOf(unread, ratio),
    text: computed.color,
    back: computed.backgroundColor,
    line: colour('muted'),
    chosen: computed.getPropertyValue('--mantine-primary-color-filled').trim() || computed.color,
    font: `12px ${computed.fontFamily}`,
  };
}

/** Reads the colours of a scheme once for each number of pixels per CSS pixel. */
export function createMapStyles(scheme: string) {
  const read = new Map<string, MapStyle>();
  return (element: Element, ratio: number): MapStyle => {
    const key = `${scheme} ${ratio}`;
    const known = read.get(key) ?? readMapStyle(element, ratio);
    read.set(key, known);
    return known;
  };
}

/** Smaller rectangles are drawn at this size, so that no prefix seems free. */
const LEAST = 1;
/** Rectangles from here on have a border. */
const BORDERED = 4;
const LABEL = { width: 84, height: 18 } as const;
/** A prefix that has others in it has a label where these have none. */
const HEADED = { width: 130, height: 44 } as const;

const isShown = (rect: Rect, { width, height }: Size): boolean =>
  rect.x < width && rect.y < height && rect.x + rect.width > 0 && rect.y + rect.height > 0;

type Painter = {
  context: CanvasRenderingContext2D;
  style: MapStyle;
  view: View;
  size: Size;
};

/** Fills the rectangles of nodes, those of one status together, and draws their borders. */
function fillNodes({ context, style, view, size }: Painter, nodes: readonly MapNode[]): void {
  const paths = new Map<string | null, { all: Path2D; borders: Path2D }>();
  for (const node of nodes) {
    const rect = onScreen(view, node.rect);
    if (!isShown(rect, size)) continue;
    const { status } = node.prefix;
    let path = paths.get(status);
    if (!path) paths.set(status, (path = { all: new Path2D(), borders: new Path2D() }));
    path.all.rect(rect.x, rect.y, Math.max(rect.width, LEAST), Math.max(rect.height, LEAST));
    if (rect.width >= BORDERED && rect.height >= BORDERED)
      path.borders.rect(rect.x + 0.5, rect.y + 0.5, rect.width - 1, rect.height - 1);
  }
  context.lineWidth = 1;
  for (const [status, { all, borders }] of paths) {
    const { fill, line } = style.of(status);
    context.fillStyle = fill;
    context.fill(all);
    context.strokeStyle = line;
    context.stroke(borders);
  }
}

/** The part of a rectangle that is on the canvas: labels stay in view. */
function shownPart(rect: Rect, { width, height }: Size): Rect {
  const [x, y] = [Math.max(rect.x, 0), Math.max(rect.y, 0)];
  return {
    ...{ x, y },
    width: Math.min(rect.x + rect.width, width) - x,
    height: Math.min(rect.y + rect.height, height) - y,
  };
}

function drawLabels({ context, style, view, size }: Painter, nodes: readonly MapNode[]): void {
  context.font = style.font;
  context.textBaseline = 'middle';
  for (const { rect, prefix, children, parent } of nodes) {
    const screen = onScreen(view, rect);
    const least = children.length > 0 ? HEADED : LABEL;
    if (screen.width < least.width || screen.height < least.height || !isShown(screen, size))
      continue;
    // The whole map is named beside it.
    if (parent === null && children.length > 0) continue;
    const { x, y, width, height } = shownPart(screen, size);
    const text = context.measureText(prefix.cidr).width;
    if (text + 8 > width || height < LABEL.height) continue;
    const isHead = children.length > 0;
    const [left, middle] = isHead
      ? [x + 4, y + LABEL.height / 2 + 2]
      : [x + (width - text) / 2, y + height / 2];
    context.fillStyle = style.back;
    context.fillRect(left - 3, middle - LABEL.height / 2, text + 6, LABEL.height - 1);
    context.fillStyle = style.text;
    context.fillText(prefix.cidr, left, middle);
  }
}

function drawChosen({ context, style, view, size }: Painter, { rect }: MapItem): void {
  const screen = onScreen(view, rect);
  if (!isShown(screen, size)) return;
  const [width, height] = [Math.max(screen.width, 6), Math.max(screen.height, 6)];
  context.lineWidth = 5;
  context.strokeStyle = style.back;
  context.strokeRect(screen.x, screen.y, width, height);
  context.lineWidth = 3;
  context.strokeStyle = style.chosen;
  context.strokeRect(screen.x, screen.y, width, height);
}

/** Nodes in two groups: those with others in them are drawn first, the largest first. */
export function layersOf({ nodes }: MapModel): { outer: MapNode[]; inner: MapNode[] } {
  const outer = nodes.filter(({ children }) => children.length > 0);
  const inner = nodes.filter(({ children }) => children.length === 0);
  outer.sort((one, other) => one.block.length - other.block.length);
  return { outer, inner };
}

/** A single address is at least so large, in a prefix that has space for it. */
const LEAST_MARK = 3;
/** In smaller prefixes, addresses would hide what these are. */
const LEAST_HOLDER = 24;
/** From here on there is a line between two addresses. */
const SPACED = 5;

/** Draws addresses as filled parts, and ranges as framed ones. */
function drawMarks({ context, style, view, size }: Painter, marks: readonly MapMark[]): void {
  context.lineWidth = 2;
  for (const { kind, rect, holder, status } of marks) {
    const screen = onScreen(view, rect);
    const around = onScreen(view, holder);
    if (!isShown(screen, size) || Math.min(around.width, around.height) < LEAST_HOLDER) continue;
    const [width, height] = [
      Math.max(screen.width, LEAST_MARK),
      Math.max(screen.height, LEAST_MARK),
    ];
    const { line } = style.of(status === 'dhcp' || status === 'slaac' ? null : status);
    const gap = Math.min(width, height) >= SPACED ? 1 : 0;
    if (kind === 'address') {
      context.fillStyle = line;
      context.fillRect(screen.x + gap, screen.y + gap, width - 2 * gap, height - 2 * gap);
    } else {
      context.strokeStyle = line;
      context.strokeRect(screen.x + 1, screen.y + 1, width - 2, height - 2);
    }
  }
}

/** Hatches what is not known, over prefixes that have others in them: these may have more. */
function drawUnread({ context, style, view, size }: Painter, areas: readonly Rect[]): void {
  context.fillStyle = style.unread;
  for (const area of areas) {
    const rect = onScreen(view, area);
    if (isShown(rect, size)) context.fillRect(rect.x, rect.y, rect.width, rect.height);
  }
}

type Drawn = { marks: MapMarks; unread: readonly Rect[]; chosen: MapItem | undefined };

/** Draws a map. The caller has set the scale of the canvas to its pixels. */
export function drawMap(
  painter: Painter,
  { outer, inner }: ReturnType<typeof layersOf>,
  { marks, unread, chosen }: Drawn,
): void {
  const { context, style, view, size } = painter;
  context.fillStyle = style.back;
  context.fillRect(0, 0, size.width, size.height);
  // Prefixes of one status in others of another: each is drawn on what it is in.
  for (const node of outer) fillNodes(painter, [node]);
  drawUnread(painter, unread);
  fillNodes(painter, inner);
  drawMarks(painter, marks.all);
  drawLabels(painter, outer);
  drawLabels(painter, inner);
  if (chosen) drawChosen({ context, style, view, size }, chosen);
}
