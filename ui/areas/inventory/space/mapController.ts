import type { Block } from '../../../../domain/inventory/cidr.ts';
import type { Rect } from './mapLayout.ts';
import { between, clampView, viewOf, WHOLE_MAP, zoomed, type Size, type View } from './mapView.ts';

const ANIMATION_MS = 200;
/** The map has come to rest when it has not moved for as long. */
const REST_MS = 200;

const isStill = (): boolean => matchMedia('(prefers-reduced-motion: reduce)').matches;

type Options = {
  canvas: HTMLCanvasElement;
  whole: Block;
  /** Draws a view. It is called once in a frame at most. */
  draw: (canvas: HTMLCanvasElement, view: View, size: Size) => void;
  onRest: (view: View, size: Size) => void;
};

export type MapController = ReturnType<typeof createMapController>;

/** Calls `draw` once in the next frame, however often it is asked for, and `rest` after the last time. */
function createFrames(draw: () => void, rest: () => void) {
  let frame = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const move = (): void => {
    clearTimeout(timer);
    timer = setTimeout(rest, REST_MS);
  };
  return {
    /** For what has been drawn already. */
    move,
    request(): void {
      move();
      if (frame !== 0) return;
      frame = requestAnimationFrame(() => {
        frame = 0;
        draw();
      });
    },
    stop(): void {
      clearTimeout(timer);
      cancelAnimationFrame(frame);
    },
  };
}

/** What a canvas shows of a map: it changes in each frame, so React does not know of it. */
export function createMapController({ canvas, whole, draw, onRest }: Options) {
  let view: View | undefined;
  let size: Size = { width: 0, height: 0 };
  let animation = 0;
  const frames = createFrames(
    () => view && draw(canvas, view, size),
    () => view && onRest(view, size),
  );

  const show = (next: View): void => {
    cancelAnimationFrame(animation);
    view = next;
    frames.request();
  };

  /** Leads to a view in a moment, so that the eye can follow. */
  const animate = (to: View): void => {
    const from = view;
    if (!from || isStill()) return show(to);
    cancelAnimationFrame(animation);
    let startedAt: number | undefined;
    const step = (at: number): void => {
      startedAt ??= at;
      const part = Math.min(1, (at - startedAt) / ANIMATION_MS);
      view = part === 1 ? to : between(from, to, part * (2 - part), size);
      frames.request();
      if (part < 1) animation = requestAnimationFrame(step);
    };
    animation = requestAnimationFrame(step);
  };

  const measure = (): void => {
    const { clientWidth: width, clientHeight: height } = canvas;
    // An observer also notifies of the size that there was when it began.
    const isSame = size.width === width && size.height === height;
    if (isSame || width === 0 || height === 0) return;
    size = { width, height };
    canvas.width = Math.round(size.width * devicePixelRatio);
    canvas.height = Math.round(size.height * devicePixelRatio);
    view = view ? clampView(view, size, whole) : viewOf(WHOLE_MAP, size, whole);
    // A canvas loses its content with its size: without a frame of its own it would flicker.
    draw(canvas, view, size);
    frames.move();
  };
  measure();
  const observer = new ResizeObserver(measure);
  observer.observe(canvas);

  return {
    redraw: () => frames.request(),
    /** What is shown now; undefined while the canvas has no size. */
    current: () => view && { view, size },
    panBy(x: number, y: number): void {
      if (!view) return;
      const moved = { ...view, x: view.x - x / view.scale, y: view.y - y / view.scale };
      show(clampView(moved, size, whole));
    },
    /** Magnifies about a point of the canvas; without one about its middle, in a moment. */
    zoomBy(factor: number, at?: { x: number; y: number }): void {
      if (!view) return;
      const middle = { x: size.width / 2, y: size.height / 2 };
      const next = zoomed(view, factor, at ?? middle, [size, whole]);
      if (at) show(next);
      else animate(next);
    },
    showRect: (rect: Rect) => animate(viewOf(rect, size, whole)),
    showWhole: () => animate(viewOf(WHOLE_MAP, size, whole)),
    stop(): void {
      observer.disconnect();
      frames.stop();
      cancelAnimationFrame(animation);
    },
  };
}
