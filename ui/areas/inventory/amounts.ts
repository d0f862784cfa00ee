/** A part in percent, as short as it is true: `0 %`, `<0.1 %`, `12.3 %`. */
export function formatPercent(percent: number): string {
  if (percent === 0 || percent === 100) return `${percent} %`;
  if (percent < 0.1) return '<0.1 %';
  if (percent > 99.9) return '>99.9 %';
  return `${percent < 10 ? percent.toFixed(1) : percent.toFixed(0)} %`;
}
