import { useComputedColorScheme } from '@mantine/core';
import { useEffect, useMemo, useRef, useState } from 'react';
import { labelOfField } from '../../../parts/format.ts';
import { IconButton } from '../../../parts/PermissionButton.tsx';
import { drawMap, layersOf, LEGEND, readMapStyle, styleOf, type MapStyle } from './drawMap.ts';
import type { MapItem, MapModel } from './mapModel.ts';
import { shownNetworks, type Size, type View } from './mapView.ts';
import { sizeText } from './networks.ts';
import { useMapEvents, ZOOM_STEP } from './useMapEvents.ts';
import { useMapView } from './useMapView.ts';
import classes from './Space.module.css';

type Props = {
  model: MapModel;
  chosen: MapItem | undefined;
  onChoose: (item: MapItem) => void;
  /** Gets the networks that cover what is shown, each time that the map has come to rest. */
  onShown: (networks: readonly string[]) => void;
};

/** What an item is, in words. */
export function itemText({ cidr, node, block }: MapItem): string {
  const what = node ? (node.prefix.status ?? 'not readable for you') : 'free';
  return `${cidr}, ${labelOfField(what).toLowerCase()}, ${sizeText(block)}`;
}

/** Draws a model on a canvas in the colours of the theme. */
function useDrawing(canvas: React.RefObject<HTMLCanvasElement | null>, props: Props) {
  const { model, chosen } = props;
  const scheme = useComputedColorScheme();
  const layers = useMemo(() => layersOf(model), [model]);
  const style = useRef<{ of: MapStyle; scheme: string; ratio: number }>(undefined);
  return (view: View, size: Size) => {
    const element = canvas.current;
    const context = element?.getContext('2d', { alpha: false });
    if (!element || !context) return;
    const ratio = devicePixelRatio;
    if (style.current?.scheme !== scheme || style.current.ratio !== ratio)
      style.current = { of: readMapStyle(element, ratio), scheme, ratio };
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawMap({ context, style: style.current.of, view, size }, layers, chosen);
  };
}

/**
 * The prefixes in a prefix as rectangles: half of an area is half of its addresses. The tree beside it has
 * the same for those who cannot see it.
 */
export function PrefixMap(props: Props) {
  const { model, chosen, onChoose, onShown } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const [hovered, setHovered] = useState<MapItem>();
  const draw = useDrawing(canvas, props);
  const controls = useMapView({ canvas, whole: model.whole, draw });
  const { redraw, rest } = controls;
  const scheme = useComputedColorScheme();
  useEffect(redraw, [redraw, model, chosen, scheme]);
  useEffect(() => {
    if (rest) onShown(shownNetworks(model.whole, rest.view, rest.size));
  }, [rest, model.whole, onShown]);
  const onHover = (item: MapItem | undefined) =>
    setHovered((old) => (old?.cidr === item?.cidr ? old : item));
  const events = useMapEvents({ canvas, model, controls, chosen, onChoose, onHover });
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
        <IconButton icon="plus" label="Zoom in" onClick={() => controls.zoomBy(ZOOM_STEP)} />
        <IconButton icon="minus" label="Zoom out" onClick={() => controls.zoomBy(1 / ZOOM_STEP)} />
        <IconButton icon="home" label="Show all" onClick={controls.showWhole} />
      </div>
      <div className={classes.mapFoot}>
        <span className={classes.hovered} aria-hidden="true">
          {hovered && itemText(hovered)}
        </span>
        <Legend />
      </div>
      <p id="map-keys" className={classes.keys}>
        Arrows go to the next part, into a prefix and out of it; with Shift they move the map. Enter
        magnifies, + and − zoom, 0 shows all.
      </p>
      <p className={classes.hidden} role="status">
        {chosen && itemText(chosen)}
      </p>
    </div>
  );
}

const LEGEND_TEXT: Readonly<Record<string, string>> = {
  container: 'Container: free inside',
  unreadable: 'Not readable for you',
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
    </ul>
  );
}
