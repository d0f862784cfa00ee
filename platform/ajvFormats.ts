import type { Ajv2020 } from 'ajv/dist/2020.js';
import plugin from 'ajv-formats';

/** Adds the formats of JSON Schema, such as `date-time`. The plugin's types describe its CommonJS shape. */
export const addFormats = plugin as unknown as (ajv: Ajv2020, options?: { mode: 'fast' }) => void;
