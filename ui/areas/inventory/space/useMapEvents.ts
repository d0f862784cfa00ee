import { useEffect, useRef, type KeyboardEvent, type PointerEvent, type RefObject } from 'react';
import type { MapController } from './mapController.ts';
import { addressAt, type Rect } from './mapLayout.ts';
import type { MapItem, MapMarks, MapModel } from './mapModel.ts';
import { isInside, onScreen } from './mapView.ts';

type Options = {
  canvas: RefObject<HTMLCanvasElement | null>;
  model: MapModel;
  marks: MapMarks;
  controller: RefObject<MapController | undefined>;
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
function itemAt(
  { canvas, model, marks, controller }: Options,
  event: { clientX: number; clientY: number },
): MapItem | undefined {
  const box = canvas.current?.getBoundingClientRect();
  const shown = controller.current?.current();
  if (!box || !shown) return undefined;
  const { view } = shown;
  const x = (event.clientX - box.left) / view.scale + view.x;
  const y = (event.clientY - box.top) / view.scale + view.y;
  const address = addressAt(model.whole, Math.max(x, 0), Math.max(y, 0));
  const isLarge = (rect: Rect): boolean => {
    const { width, height } = onScreen(view, rect);
    return width >= HIT_PIXELS && height >= HIT_PIXELS;
  };
  // Where an address can be hit, it is meant, and not the prefix that it is in.
  const mark = marks.at(address);
  return mark && isLarge(mark.rect) ? model.addressAt(address) : model.itemAt(address, isLarge);
}

/** Moves the map with a pressed pointer; a press that does not move chooses what is there. */
function usePointer(options: Options) {
  const pressed = useRef<{ last: Point; isDragged: boolean }>(undefined);
  const { controller, onChoose, onHover } = options;
  return {
    onPointerDown: (event: PointerEvent<HTMLCanvasElement>) => {
      if (event.button !== 0) return;
      event.currentTarget.setPointerCapture(event.pointerId);
      pressed.current = { last: { x: event.clientX, y: event.clientY }, isDragged: false };
    },
    onPointerMove: (event: PointerEvent<HTMLCanvasElement>) => {
      const press = pressed.current;
      if (!press) {
        onHover(itemAt(options, event));
        return;
      }
      const [x, y] = [event.clientX - press.last.x, event.clientY - press.last.y];
      if (!press.isDragged && Math.hypot(x, y) < DRAG_PIXELS) return;
      press.isDragged = true;
      press.last = { x: event.clientX, y: event.clientY };
      controller.current?.panBy(x, y);
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
      if (item) controller.current?.showRect(item.rect);
    },
  };
}

/** Turns of the wheel; React's own listener could not keep the page from scrolling. */
function useWheel({ canvas, controller }: Options): void {
  useEffect(() => {
    const element = canvas.current;
    const onWheel = (event: WheelEvent) => {
      event.preventDefault();
      const box = element?.getBoundingClientRect();
      const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
      const at = { x: event.clientX - (box?.left ?? 0), y: event.clientY - (box?.top ?? 0) };
      controller.current?.zoomBy(WHEEL_ZOOM ** (-event.deltaY * lines), at);
    };
    element?.addEventListener('wheel', onWheel, { passive: false });
    return () => element?.removeEventListener('wheel', onWheel);
  }, [canvas, controller]);
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

function useKeys({ model, controller, chosen, onChoose }: Options) {
  /** Brings what was chosen into view, large enough to be seen. */
  const reveal = (item: MapItem) => {
    const shown = controller.current?.current();
    if (!shown) return;
    const screen = onScreen(shown.view, item.rect);
    const isSmall = screen.width < HIT_PIXELS * 2 || screen.height < HIT_PIXELS * 2;
    if (!isSmall && isInside(screen, shown.size)) return;
    const around = model.around(item);
    controller.current?.showRect(isSmall || !around ? item.rect : around.rect);
  };
  return (event: KeyboardEvent) => {
    const controls = controller.current;
    if (!controls) return;
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
  useWheel(options);
  return { ...usePointer(options), onKeyDown: useKeys(options) };
}

export { ZOOM_STEP };
