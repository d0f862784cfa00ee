import { useComputedColorScheme } from '@mantine/core';
import { useCallback, useEffect, useMemo, useRef, useState, type RefObject } from 'react';
import { formatBlock } from '../../../../domain/inventory/cidr.ts';
import { labelOfField } from '../../../parts/format.ts';
import { IconButton } from '../../../parts/PermissionButton.tsx';
import { drawMap, layersOf, LEGEND, createMapStyles, styleOf } from './drawMap.ts';
import { stateOf, itemText } from './itemState.ts';
import { createMapController, type MapController } from './mapController.ts';
import type { Rect } from './mapLayout.ts';
import type { MapItem, MapMarks, MapModel } from './mapModel.ts';
import { shownNetworks, type Size, type View } from './mapView.ts';
import { networkOf } from './networks.ts';
import { useMapEvents, ZOOM_STEP } from './useMapEvents.ts';
import classes from './Space.module.css';

type Props = {
  model: MapModel;
  /** Single addresses and ranges on it. */
  marks: MapMarks;
  /** What is shown and not known: areas of the map. */
  unread: readonly Rect[];
  chosen: MapItem | undefined;
  onChoose: (item: MapItem) => void;
  /** Gets the networks that cover what is shown, each time that the map has come to rest. */
  onShown: (networks: readonly string[]) => void;
};

/** Draws a model on a canvas in the colours of the theme. */
function useDrawing({ model, marks, unread, chosen }: Props) {
  const scheme = useComputedColorScheme();
  const layers = useMemo(() => layersOf(model), [model]);
  // Each scheme has colours of its own.
  const styleAt = useMemo(() => createMapStyles(scheme), [scheme]);
  return useCallback(
    (canvas: HTMLCanvasElement, view: View, size: Size) => {
      const context = canvas.getContext('2d', { alpha: false });
      if (!context) return;
      const ratio = devicePixelRatio;
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      const painter = { context, style: styleAt(canvas, ratio), view, size };
      drawMap(painter, layers, { marks, unread, chosen });
    },
    [styleAt, layers, marks, unread, chosen],
  );
}

/** The controller of the map, which lives as long as the map is of the same network. */
function useController(canvas: RefObject<HTMLCanvasElement | null>, props: Props) {
  const { whole } = props.model;
  const draw = useDrawing(props);
  const controller = useRef<MapController>(undefined);
  const latest = useRef({ draw, onShown: props.onShown });
  useEffect(() => {
    latest.current = { draw, onShown: props.onShown };
    controller.current?.redraw();
  }, [draw, props.onShown]);
  const network = formatBlock(whole);
  useEffect(() => {
    // A model that was read again has a block of its own for the same network.
    const of = networkOf(network);
    if (!canvas.current || !of) return undefined;
    const started = createMapController({
      canvas: canvas.current,
      whole: of,
      draw: (element, view, size) => latest.current.draw(element, view, size),
      onRest: (view, size) => latest.current.onShown(shownNetworks(of, view, size)),
    });
    controller.current = started;
    return started.stop;
  }, [canvas, network]);
  return controller;
}

/**
 * The prefixes in a prefix as rectangles: half of an area is half of its addresses. The tree beside it has
 * the same for those who cannot see it.
 */
export function PrefixMap(props: Props) {
  const { model, marks, chosen, onChoose } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const [hovered, setHovered] = useState<MapItem>();
  const controller = useController(canvas, props);
  const onHover = (item: MapItem | undefined) =>
    setHovered((old) => (old?.cidr === item?.cidr ? old : item));
  const textOf = (item: MapItem) => itemText(item, stateOf(item, model, marks));
  const events = useMapEvents({ canvas, model, marks, controller, chosen, onChoose, onHover });
  return (
    <div className={classes.mapFrame}>
      <canvas
        ref={canvas}
        className={classes.map}
        tabIndex={0}
        role="application"
        aria-label={`Map of ${model.root.prefix.cidr}`}
        aria-describedby="map-keys"
        {...events}
      />
      <div className={classes.mapTools}>
        <IconButton
          icon="plus"
          label="Zoom in"
          onClick={() => controller.current?.zoomBy(ZOOM_STEP)}
        />
        <IconButton
          icon="minus"
          label="Zoom out"
          onClick={() => controller.current?.zoomBy(1 / ZOOM_STEP)}
        />
        <IconButton icon="home" label="Show all" onClick={() => controller.current?.showWhole()} />
      </div>
      <div className={classes.mapFoot}>
        <span className={classes.hovered} aria-hidden="true">
          {hovered && textOf(hovered)}
        </span>
        <Legend />
      </div>
      <p id="map-keys" className={classes.keys}>
        Arrows go to the next part, into a prefix and out of it; with Shift they move the map. Enter
        magnifies, + and − zoom, 0 shows all.
      </p>
      <p className={classes.hidden} role="status">
        {chosen && textOf(chosen)}
      </p>
    </div>
  );
}

const LEGEND_TEXT: Readonly<Record<string, string>> = {
  container: 'Container: free inside',
  unreadable: 'You may not read it',
};

/** How prefixes of each status are drawn. */
function Legend() {
  return (
    <ul className={classes.legend} aria-label="Legend">
      {LEGEND.map((status) => {
        const { tone, pattern } = styleOf(status);
        return (
          <li key={status}>
            <span className={classes.swatch} data-tone={tone} data-pattern={pattern} />
            {LEGEND_TEXT[status] ?? labelOfField(status)}
          </li>
        );
      })}
      <li>
        <span className={classes.swatch} data-tone="active" data-pattern="mark" />
        Address
      </li>
      <li>
        <span className={classes.swatch} data-tone="active" data-pattern="frame" />
        Range
      </li>
      <li>
        <span className={classes.swatch} data-tone="muted" data-pattern="falling" />
        Not read
      </li>
    </ul>
  );
}
