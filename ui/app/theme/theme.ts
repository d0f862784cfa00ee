import { createTheme, type MantineColorsTuple } from '@mantine/core';

/** A calm blue whose seventh shade has enough contrast with white (WCAG 2.2, 1.4.3). */
const steel: MantineColorsTuple = [
  '#eaf4fb',
  '#d6e6f3',
  '#abcce6',
  '#7db0d9',
  '#5899ce',
  '#408ac7',
  '#2772ad',
  '#1c5d8c',
  '#134f7a',
  '#054267',
];

const SYSTEM_FONT =
  'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", sans-serif';

/** A dialog is outside the page: its header would count as a second header of the document. */
const DIALOG = {
  closeButtonProps: { 'aria-label': 'Close' },
  attributes: { header: { role: 'none' } },
};

/** Dense and calm: rows of 28 px, small controls, no shadows. */
export const theme = createTheme({
  colors: { steel },
  primaryColor: 'steel',
  primaryShade: 7,
  autoContrast: true,
  respectReducedMotion: true,
  fontFamily: SYSTEM_FONT,
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, monospace',
  fontSizes: { xs: '0.75rem', sm: '0.8125rem', md: '0.875rem', lg: '1rem', xl: '1.125rem' },
  defaultRadius: 'sm',
  fontWeights: { medium: '500' },
  headings: {
    fontWeight: '600',
    sizes: {
      h1: { fontSize: '1.125rem', lineHeight: '1.5' },
      h2: { fontSize: '1rem', lineHeight: '1.5' },
      h3: { fontSize: '0.875rem', lineHeight: '1.5' },
    },
  },
  components: {
    Button: { defaultProps: { size: 'xs' } },
    TextInput: { defaultProps: { size: 'xs' } },
    PasswordInput: { defaultProps: { size: 'xs' } },
    Textarea: { defaultProps: { size: 'xs' } },
    Select: { defaultProps: { size: 'xs' } },
    NativeSelect: { defaultProps: { size: 'xs' } },
    Radio: { defaultProps: { size: 'xs' } },
    InputWrapper: {
      // Mantine's smallest descriptions and errors have 10 px.
      vars: () => ({
        label: { '--input-label-size': '0.75rem', '--input-asterisk-color': 'var(--hf-bad)' },
        description: { '--input-description-size': '0.75rem' },
        error: { '--input-error-size': '0.75rem' },
      }),
    },
    // The titles of Mantine's alerts have too little contrast.
    Alert: { vars: () => ({ root: { '--alert-color': 'var(--mantine-color-text)' } }) },
    NumberInput: { defaultProps: { size: 'xs' } },
    Checkbox: { defaultProps: { size: 'xs' } },
    Switch: { defaultProps: { size: 'xs' } },
    SegmentedControl: { defaultProps: { size: 'xs' } },
    Tooltip: {
      defaultProps: { openDelay: 300, events: { hover: true, focus: true, touch: true } },
    },
    ActionIcon: { defaultProps: { variant: 'subtle', color: 'gray' } },
    Modal: { defaultProps: { centered: true, ...DIALOG } },
    Drawer: { defaultProps: DIALOG },
  },
});
