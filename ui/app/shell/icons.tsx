import type { ReactNode } from 'react';

type IconProps = { size?: number };

/** Icons of the frame, drawn with lines of 24 × 24 (Tabler Icons, MIT). */
const icon = (shape: ReactNode) =>
  function Icon({ size = 18 }: IconProps) {
    return (
      <svg
        width={size}
        height={size}
        viewBox="0 0 24 24"
        fill="none"
        stroke="currentColor"
        strokeWidth={1.75}
        strokeLinecap="round"
        strokeLinejoin="round"
        aria-hidden="true"
      >
        {shape}
      </svg>
    );
  };

export const HomeIcon = icon(
  <path d="M5 12H3l9-9 9 9h-2M5 12v7a2 2 0 0 0 2 2h10a2 2 0 0 0 2-2v-7M9 21v-6a2 2 0 0 1 2-2h2a2 2 0 0 1 2 2v6" />,
);
export const MenuIcon = icon(<path d="M4 6h16M4 12h16M4 18h16" />);
export const SearchIcon = icon(<path d="M3 10a7 7 0 1 0 14 0 7 7 0 0 0-14 0M21 21l-6-6" />);
export const SunIcon = icon(
  <path d="M8 12a4 4 0 1 0 8 0 4 4 0 0 0-8 0M3 12h1M12 3v1M20 12h1M12 20v1M5.6 5.6l.7.7M18.4 5.6l-.7.7M17.7 17.7l.7.7M6.3 17.7l-.7.7" />,
);
export const MoonIcon = icon(<path d="M12 3h.4A7.5 7.5 0 0 0 20.3 15.3 9 9 0 1 1 12 3z" />);
export const UserIcon = icon(
  <path d="M8 7a4 4 0 1 0 8 0 4 4 0 0 0-8 0M6 21v-2a4 4 0 0 1 4-4h4a4 4 0 0 1 4 4v2" />,
);
export const ApprovalIcon = icon(
  <path d="M9 5H7a2 2 0 0 0-2 2v12a2 2 0 0 0 2 2h10a2 2 0 0 0 2-2V7a2 2 0 0 0-2-2h-2M9 5a2 2 0 0 1 2-2h2a2 2 0 0 1 2 2 2 2 0 0 1-2 2h-2a2 2 0 0 1-2-2M9 14l2 2 4-4" />,
);
export const ChevronDownIcon = icon(<path d="m6 9 6 6 6-6" />);
export const BuildingIcon = icon(
  <path d="M3 21h18M5 21V5a2 2 0 0 1 2-2h10a2 2 0 0 1 2 2v16M9 8h1M9 12h1M9 16h1M14 8h1M14 12h1M14 16h1" />,
);
export const JobsIcon = icon(<path d="M7 4v16l13-8z" />);
export const SchedulesIcon = icon(
  <path d="M6 5h12a2 2 0 0 1 2 2v12a2 2 0 0 1-2 2H6a2 2 0 0 1-2-2V7a2 2 0 0 1 2-2M16 3v4M8 3v4M4 11h16M12 14v2.500l1.500 1" />,
);
