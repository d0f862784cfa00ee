import { useCallback, useEffect, useLayoutEffect, useRef, useState, type RefObject } from 'react';
import type { Block } from '../../../../domain/inventory/cidr.ts';
import type { Rect } from './mapLayout.ts';
import { between, clampView, viewOf, zoomed, WHOLE_MAP, type Size, type View } from './mapView.ts';

const ANIMATION_MS = 200;

const isStill = (): boolean => matchMedia('(prefers-reduced-motion: reduce)').matches;

/** What is drawn: it changes in each frame, so it is no state of React. */
type Shown = { view: View; size: Size; frame: number; animation: number };

/** Follows the size of a canvas, and the part of the map that it is to show. */
function useShown(canvas: RefObject<HTMLCanvasElement | null>, whole: Block, onSize: () => void) {
  const shown = useRef<Shown>({
    view: { x: 0, y: 0, scale: 0 },
    size: { width: 0, height: 0 },
    frame: 0,
    animation: 0,
  });
  const latest = useRef(onSize);
  useEffect(() => void (latest.current = onSize));
  useLayoutEffect(() => {
    const element = canvas.current;
    if (!element) return undefined;
    const measure = () => {
      const now = shown.current;
      const size = { width: element.clientWidth, height: element.clientHeight };
      if (size.width === 0 || size.height === 0) return;
      const isFirst = now.view.scale === 0;
      now.size = size;
      now.view = isFirst ? viewOf(WHOLE_MAP, size, whole) : clampView(now.view, size, whole);
      element.width = Math.round(size.width * devicePixelRatio);
      element.height = Math.round(size.height * devicePixelRatio);
      latest.current();
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [canvas, whole]);
  return shown;
}

type Options = {
  canvas: RefObject<HTMLCanvasElement | null>;
  whole: Block;
  /** Draws a view. It is called once in a frame at most. */
  draw: (view: View, size: Size) => void;
};

/** Moves and magnifies what a canvas shows of a map. `rest` is the view after it has come to rest. */
export function useMapView({ canvas, whole, draw }: Options) {
  const latest = useRef(draw);
  useEffect(() => void (latest.current = draw));
  const [rest, setRest] = useState<{ view: View; size: Size }>();
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const redraw = useCallback(() => {
    const now = shown.current;
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setRest({ view: now.view, size: now.size }), ANIMATION_MS);
    if (now.frame !== 0) return;
    now.frame = requestAnimationFrame(() => {
      now.frame = 0;
      if (now.view.scale > 0) latest.current(now.view, now.size);
    });
  }, []);
  const shown = useShown(canvas, whole, redraw);
  useEffect(() => {
    const now = shown.current;
    return () => {
      clearTimeout(timer.current);
      cancelAnimationFrame(now.frame);
      cancelAnimationFrame(now.animation);
      now.frame = 0;
    };
  }, [shown]);

  const show = useCallback(
    (view: View) => {
      cancelAnimationFrame(shown.current.animation);
      shown.current.view = view;
      redraw();
    },
    [shown, redraw],
  );
  /** Leads to a view in a moment, so that the eye can follow. */
  const animate = useCallback(
    (to: View) => {
      const now = shown.current;
      const from = now.view;
      if (isStill()) return show(to);
      cancelAnimationFrame(now.animation);
      let startedAt: number | undefined;
      const step = (at: number) => {
        startedAt ??= at;
        const part = Math.min(1, (at - startedAt) / ANIMATION_MS);
        now.view = part === 1 ? to : between(from, to, part * (2 - part), now.size);
        redraw();
        if (part < 1) now.animation = requestAnimationFrame(step);
      };
      now.animation = requestAnimationFrame(step);
    },
    [shown, show, redraw],
  );
  return {
    rest,
    redraw,
    current: () => shown.current,
    panBy: (x: number, y: number) => {
      const { view, size } = shown.current;
      const moved = { ...view, x: view.x - x / view.scale, y: view.y - y / view.scale };
      show(clampView(moved, size, whole));
    },
    /** Magnifies about a point of the canvas; without one about its middle. */
    zoomBy: (factor: number, at?: { x: number; y: number }) => {
      const { view, size } = shown.current;
      const point = at ?? { x: size.width / 2, y: size.height / 2 };
      const next = zoomed(view, factor, point, [size, whole]);
      if (at) show(next);
      else animate(next);
    },
    showRect: (rect: Rect) => animate(viewOf(rect, shown.current.size, whole)),
    showWhole: () => animate(viewOf(WHOLE_MAP, shown.current.size, whole)),
  };
}

export type MapControls = ReturnType<typeof useMapView>;
