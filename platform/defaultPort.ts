/** Where the API listens, unless `HOLDFAST_PORT` says something else. A file of its own: the health check loads little. */
export const DEFAULT_PORT = 8_080;
