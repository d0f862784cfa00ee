/** The durations of one operation in milliseconds, one for each size. */
export type Series = { name: string; values: number[] };

const WIDTH = 920;
const HEIGHT = 560;
const AREA = { left: 60, right: 540, top: 24, bottom: 520 };
const MIN_MS = 1;
const MAX_MS = 10_000;

/** The colour of a line: all of the same lightness. */
const colour = (i: number, of: number): string => `hsl(${Math.round((360 * i) / of)} 65% 40%)`;

const y = (valueMs: number): number => {
  const part = Math.log(Math.max(MIN_MS, valueMs) / MIN_MS) / Math.log(MAX_MS / MIN_MS);
  return AREA.bottom - part * (AREA.bottom - AREA.top);
};

/** Positions of labels near the ends of their lines, without overlaps. */
function labelPositions(ends: readonly number[]): number[] {
  const positions: number[] = [];
  let next = AREA.top;
  for (const [i, end] of [...ends.entries()].sort(([, a], [, b]) => a - b)) {
    next = Math.max(next, end - 60);
    positions[i] = next;
    next += 18;
  }
  return positions;
}

/** Draws durations over the number of records, both on logarithmic scales, as an SVG. */
export function drawChart(sizes: readonly number[], series: readonly Series[]): string {
  const logs = sizes.map(Math.log10);
  const [first = 0, last = 1] = [logs[0], logs.at(-1)];
  const x = (log: number) =>
    AREA.left + ((log - first) / (last - first || 1)) * (AREA.right - AREA.left);
  const text = (at: [number, number], content: string, more = '') =>
    `<text x="${at[0]}" y="${at[1].toFixed(1)}" ${more}>${content}</text>`;
  const grid = [1, 10, 100, 1_000, 10_000].flatMap((value) => [
    `<path d="M${AREA.left} ${y(value)}H${AREA.right}" stroke="#ccc"/>`,
    text([AREA.left - 6, y(value) + 4], `${value} ms`, 'text-anchor="end"'),
  ]);
  const columns = sizes.map((size, i) =>
    text([x(logs[i] ?? 0), AREA.bottom + 20], size.toLocaleString('en'), 'text-anchor="middle"'),
  );
  const labels = labelPositions(series.map(({ values }) => y(values.at(-1) ?? 1)));
  const lines = series.flatMap(({ name, values }, i) => {
    const points = values.map((value, n) => `${x(logs[n] ?? 0).toFixed(1)},${y(value).toFixed(1)}`);
    const stroke = colour(i, series.length);
    const label = labels[i] ?? 0;
    return [
      `<polyline points="${points.join(' ')}" fill="none" stroke="${stroke}" stroke-width="2"/>`,
      `<path d="M${AREA.right} ${y(values.at(-1) ?? 1).toFixed(1)}L${AREA.right + 20} ${label.toFixed(1)}" stroke="${stroke}"/>`,
      text(
        [AREA.right + 24, label + 4],
        `${name}: ${(values.at(-1) ?? 0).toFixed(1)} ms`,
        `fill="${stroke}"`,
      ),
    ];
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="13">
<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>
${[...grid, ...columns, ...lines].join('\n')}
</svg>
`;
}
