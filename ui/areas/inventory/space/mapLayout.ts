import { addressBits, sizeOfLength, type Block } from '../../../../domain/inventory/cidr.ts';

/** A part of the map. The whole map is 2 wide and 1 high, whatever network it shows. */
export type Rect = { x: number; y: number; width: number; height: number };

export const MAP_WIDTH = 2;
export const MAP_HEIGHT = 1;

const SAFE_BITS = 53;
const ONE = '1'.charCodeAt(0);

/**
 * Where a network is on the map of another. Each bit of its length halves the map: the first one in left
 * and right, the second in top and bottom, and so on. So every network is one rectangle, and the networks
 * in it are parts of that.
 */
export function rectOf(whole: Block, block: Block): Rect {
  const depth = block.length - whole.length;
  const rect = { x: 0, y: 0, width: MAP_WIDTH, height: MAP_HEIGHT };
  const offset = (block.first - whole.first) / sizeOfLength(block.family, block.length);
  // A number has the bits of most networks, and makes them faster.
  const digits = depth > SAFE_BITS ? offset : Number(offset);
  const bits = digits.toString(2).padStart(depth, '0');
  for (let at = 0; at < depth; at += 1) {
    const isSecond = bits.charCodeAt(at) === ONE;
    if (at % 2 === 0) {
      rect.width /= 2;
      if (isSecond) rect.x += rect.width;
    } else {
      rect.height /= 2;
      if (isSecond) rect.y += rect.height;
    }
  }
  return rect;
}

/** The address at a point of the map of a network. */
export function addressAt(whole: Block, x: number, y: number): bigint {
  const depth = addressBits(whole.family) - whole.length;
  let { left, top, width, height } = { left: 0, top: 0, width: MAP_WIDTH, height: MAP_HEIGHT };
  let bits = '0';
  for (let at = 0; at < depth; at += 1) {
    if (at % 2 === 0) {
      width /= 2;
      const isSecond = x >= left + width;
      if (isSecond) left += width;
      bits += isSecond ? '1' : '0';
    } else {
      height /= 2;
      const isSecond = y >= top + height;
      if (isSecond) top += height;
      bits += isSecond ? '1' : '0';
    }
  }
  return whole.first + BigInt(`0b${bits}`);
}

/** The size of the networks of a length on the map. */
export function cellSize(whole: Block, length: number): { width: number; height: number } {
  const depth = length - whole.length;
  return {
    width: MAP_WIDTH / 2 ** Math.ceil(depth / 2),
    height: MAP_HEIGHT / 2 ** Math.floor(depth / 2),
  };
}
