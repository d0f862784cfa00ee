import { useEffect, useRef, type KeyboardEvent, type PointerEvent, type RefObject } from 'react';
import { addressAt, type Rect } from './mapLayout.ts';
import type { MapItem, MapModel } from './mapModel.ts';
import { isInside, onScreen } from './mapView.ts';
import type { MapControls } from './useMapView.ts';

type Options = {
  canvas: RefObject<HTMLCanvasElement | null>;
  model: MapModel;
  controls: MapControls;
  chosen: MapItem | undefined;
  onChoose: (item: MapItem) => void;
  onHover: (item: MapItem | undefined) => void;
};

/** A press that moves further than this moves the map. */
const DRAG_PIXELS = 4;
/** What is smaller cannot be hit; what it is in is meant. */
const HIT_PIXELS = 5;
const ZOOM_STEP = 1.6;
/** A magnification for a turn of the wheel by one pixel. */
const WHEEL_ZOOM = 1.0016;
const PAN_STEP = 80;

type Point = { x: number; y: number };

/** What is at a point of the canvas. */
function itemAt({ canvas, model, controls }: Options, event: { clientX: number; clientY: number }) {
  const box = canvas.current?.getBoundingClientRect();
  const { view } = controls.current();
  if (!box || view.scale === 0) return undefined;
  const x = (event.clientX - box.left) / view.scale + view.x;
  const y = (event.clientY - box.top) / view.scale + view.y;
  const address = addressAt(model.whole, Math.max(x, 0), Math.max(y, 0));
  return model.itemAt(address, (rect: Rect) => {
    const { width, height } = onScreen(view, rect);
    return width >= HIT_PIXELS && height >= HIT_PIXELS;
  });
}

/** Moves the map with a pressed pointer; a press that does not move chooses what is there. */
function usePointer(options: Options) {
  const pressed = useRef<{ last: Point; isDragged: boolean }>(undefined);
  const { controls, onChoose, onHover } = options;
  return {
    onPointerDown: (event: PointerEvent<HTMLCanvasElement>) => {
      if (event.button !== 0) return;
      event.currentTarget.setPointerCapture(event.pointerId);
      pressed.current = { last: { x: event.clientX, y: event.clientY }, isDragged: false };
    },
    onPointerMove: (event: PointerEvent<HTMLCanvasElement>) => {
      const press = pressed.current;
      if (!press) return onHover(itemAt(options, event));
      const [x, y] = [event.clientX - press.last.x, event.clientY - press.last.y];
      if (!press.isDragged && Math.hypot(x, y) < DRAG_PIXELS) return;
      press.isDragged = true;
      press.last = { x: event.clientX, y: event.clientY };
      controls.panBy(x, y);
    },
    onPointerUp: (event: PointerEvent<HTMLCanvasElement>) => {
      const press = pressed.current;
      pressed.current = undefined;
      const item = press && !press.isDragged ? itemAt(options, event) : undefined;
      if (item) onChoose(item);
    },
    onPointerCancel: () => (pressed.current = undefined),
    onPointerLeave: () => onHover(undefined),
    onDoubleClick: (event: { clientX: number; clientY: number }) => {
      const item = itemAt(options, event);
      if (item) controls.showRect(item.rect);
    },
  };
}

/** Turns of the wheel; React's own listener could not keep the page from scrolling. */
function useWheel(canvas: RefObject<HTMLCanvasElement | null>, controls: MapControls): void {
  const latest = useRef(controls);
  useEffect(() => void (latest.current = controls));
  useEffect(() => {
    const element = canvas.current;
    const onWheel = (event: WheelEvent) => {
      event.preventDefault();
      const box = element?.getBoundingClientRect();
      const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
      const at = { x: event.clientX - (box?.left ?? 0), y: event.clientY - (box?.top ?? 0) };
      latest.current.zoomBy(WHEEL_ZOOM ** (-event.deltaY * lines), at);
    };
    element?.addEventListener('wheel', onWheel, { passive: false });
    return () => element?.removeEventListener('wheel', onWheel);
  }, [canvas]);
}

/** Where an arrow leads: to the next or previous part of the same prefix, into a prefix, or out of it. */
function neighbour(model: MapModel, chosen: MapItem | undefined, key: string) {
  if (!chosen) return model.find(model.whole);
  if (key === 'ArrowRight') return model.next(chosen);
  if (key === 'ArrowLeft') return model.previous(chosen);
  return key === 'ArrowDown' ? model.inside(chosen) : model.around(chosen);
}

const MOVES: Readonly<Record<string, Point>> = {
  ArrowLeft: { x: PAN_STEP, y: 0 },
  ArrowRight: { x: -PAN_STEP, y: 0 },
  ArrowUp: { x: 0, y: PAN_STEP },
  ArrowDown: { x: 0, y: -PAN_STEP },
};

function useKeys({ model, controls, chosen, onChoose }: Options) {
  /** Brings what was chosen into view, large enough to be seen. */
  const reveal = (item: MapItem) => {
    const { view, size } = controls.current();
    const screen = onScreen(view, item.rect);
    const isSmall = screen.width < HIT_PIXELS * 2 || screen.height < HIT_PIXELS * 2;
    if (!isSmall && isInside(screen, size)) return;
    const around = model.around(item);
    controls.showRect(isSmall || !around ? item.rect : around.rect);
  };
  return (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { key } = event;
    const move = MOVES[key];
    if (move && event.shiftKey) controls.panBy(move.x, move.y);
    else if (move) {
      const item = neighbour(model, chosen, key);
      if (item) {
        onChoose(item);
        reveal(item);
      }
    } else if (key === 'Enter' && chosen) controls.showRect(chosen.rect);
    else if (key === '+' || key === '=') controls.zoomBy(ZOOM_STEP);
    else if (key === '-') controls.zoomBy(1 / ZOOM_STEP);
    else if (key === '0' || key === 'Home') controls.showWhole();
    else return;
    event.preventDefault();
  };
}

/** What the pointer, the wheel and keys do on a map. */
export function useMapEvents(options: Options) {
  useWheel(options.canvas, options.controls);
  return { ...usePointer(options), onKeyDown: useKeys(options) };
}

export { ZOOM_STEP };
