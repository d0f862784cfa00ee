import type { Usage } from '../../services/inventory/addressSpace.ts';

export const usageView = ({ size, used, reserved, children, addresses, ranges }: Usage) => ({
  size: size.toString(),
  used: used.toString(),
  free: (size - used - reserved).toString(),
  percent: Number((used * 10_000n) / (size - reserved)) / 100,
  children,
  addresses,
  ranges,
});
