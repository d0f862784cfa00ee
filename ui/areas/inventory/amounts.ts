/** A part in percent, as short as it is true: `0 %`, `<0.1 %`, `12.3 %`. */
function formatPercent(percent: number): string {
  if (percent === 0 || percent === 100) return `${percent} %`;
  if (percent < 0.1) return '<0.1 %';
  if (percent > 99.9) return '>99.9 %';
  return `${percent < 10 ? percent.toFixed(1) : percent.toFixed(0)} %`;
}

/** `used` is a count: the percentage of a few addresses of a large prefix is rounded down to 0. */
type Usage = { percent: number; used: string };

/** How much of a prefix is used; 0 % only if nothing is. */
export const formatUsage = ({ percent, used }: Usage): string =>
  percent === 0 && used !== '0' ? '<0.1 %' : formatPercent(percent);

/** The same with all its decimals, to be copied. */
export const usageText = ({ percent, used }: Usage): string =>
  percent === 0 && used !== '0' ? '<0.01 %' : `${percent} %`;
