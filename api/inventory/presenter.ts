import type { Usage } from '../../services/inventory/addressSpace.ts';

export const usageView = ({ size, used, children, addresses, ranges }: Usage) => ({
  size: size.toString(),
  used: used.toString(),
  free: (size - used).toString(),
  percent: Number((used * 10_000n) / size) / 100,
  children,
  addresses,
  ranges,
});
