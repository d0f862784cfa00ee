import {
  addressBits,
  blockAt,
  formatBlock,
  type Block,
} from '../../../../domain/inventory/cidr.ts';
import { addressAt, cellSize, MAP_HEIGHT, MAP_WIDTH, type Rect } from './mapLayout.ts';

/** The size of a canvas in CSS pixels. */
export type Size = { width: number; height: number };

/** What a canvas shows: the point of the map at its corner, and pixels per unit of the map. */
export type View = { x: number; y: number; scale: number };

/** A single address is not drawn larger. */
const MAX_CELL = 160;
/** Beyond this the fractions of the map are no longer exact. */
const MAX_SCALE = 2 ** 50;

const fitScale = ({ width, height }: Size, rect: Rect): number =>
  Math.min(width / rect.width, height / rect.height);

/** How far a map of a network can be magnified. */
const maxScale = (whole: Block): number =>
  Math.min(MAX_SCALE, MAX_CELL / cellSize(whole, addressBits(whole.family)).width);

const WHOLE: Rect = { x: 0, y: 0, width: MAP_WIDTH, height: MAP_HEIGHT };

/** Where a map may start: at its edges, or centred while it is smaller than the canvas. */
function clampStart(start: number, shown: number, all: number): number {
  if (shown >= all) return (all - shown) / 2;
  return Math.min(Math.max(start, 0), all - shown);
}

/** The nearest view that is neither beside the map nor magnified too little or too much. */
export function clampView(view: View, size: Size, whole: Block): View {
  const least = fitScale(size, WHOLE);
  const scale = Math.min(Math.max(view.scale, least), Math.max(least, maxScale(whole)));
  return {
    x: clampStart(view.x, size.width / scale, MAP_WIDTH),
    y: clampStart(view.y, size.height / scale, MAP_HEIGHT),
    scale,
  };
}

/** A view with a rectangle in its middle, as large as there is space for it. */
export function viewOf(rect: Rect, size: Size, whole: Block): View {
  const least = fitScale(size, WHOLE);
  const scale = Math.min(fitScale(size, rect), Math.max(least, maxScale(whole)));
  return clampView(
    {
      x: rect.x + (rect.width - size.width / scale) / 2,
      y: rect.y + (rect.height - size.height / scale) / 2,
      scale,
    },
    size,
    whole,
  );
}

export const WHOLE_MAP = WHOLE;

/** A view magnified by a factor; the point of the map at a point of the canvas stays there. */
export function zoomed(
  view: View,
  factor: number,
  at: { x: number; y: number },
  [size, whole]: readonly [Size, Block],
): View {
  const wanted = clampView({ ...view, scale: view.scale * factor }, size, whole).scale;
  const shift = 1 / view.scale - 1 / wanted;
  const next = { x: view.x + at.x * shift, y: view.y + at.y * shift, scale: wanted };
  return clampView(next, size, whole);
}

/** A view on the way from one to another, `part` from 0 to 1: magnified evenly. */
export function between(from: View, to: View, part: number, { width, height }: Size): View {
  const scale = from.scale * (to.scale / from.scale) ** part;
  // The part of the way by which the middle moves follows the magnification, so that both end together.
  const moved =
    from.scale === to.scale ? part : (1 / from.scale - 1 / scale) / (1 / from.scale - 1 / to.scale);
  const centre = (start: number, end: number, pixels: number) => {
    const [first, last] = [start + pixels / from.scale / 2, end + pixels / to.scale / 2];
    return first + (last - first) * moved - pixels / scale / 2;
  };
  return { x: centre(from.x, to.x, width), y: centre(from.y, to.y, height), scale };
}

/** A rectangle of the map in CSS pixels of the canvas. */
export const onScreen = ({ x, y, scale }: View, rect: Rect): Rect => ({
  x: (rect.x - x) * scale,
  y: (rect.y - y) * scale,
  width: rect.width * scale,
  height: rect.height * scale,
});

/** True if a rectangle of the canvas is inside it. */
export const isInside = (rect: Rect, { width, height }: Size): boolean =>
  rect.x >= -1 &&
  rect.y >= -1 &&
  rect.x + rect.width <= width + 1 &&
  rect.y + rect.height <= height + 1;

/** The networks of one size, four at most, that cover what is shown. */
export function shownNetworks(whole: Block, view: View, size: Size): string[] {
  const [width, height] = [size.width / view.scale, size.height / view.scale];
  let { length } = whole;
  while (length < addressBits(whole.family)) {
    const next = cellSize(whole, length + 1);
    if (next.width < width || next.height < height) break;
    length += 1;
  }
  const left = Math.max(view.x, 0);
  const top = Math.max(view.y, 0);
  // Just before the edge: what starts there is not shown.
  const right = Math.min(view.x + width, MAP_WIDTH) * (1 - Number.EPSILON);
  const bottom = Math.min(view.y + height, MAP_HEIGHT) * (1 - Number.EPSILON);
  const corners = [
    [left, top],
    [right, top],
    [left, bottom],
    [right, bottom],
  ] as const;
  const networks = corners.map(([x, y]) =>
    formatBlock(blockAt(whole.family, addressAt(whole, x, y), length)),
  );
  return [...new Set(networks)].sort();
}
