/** Most characters of a name: of a schedule, a role, an identity provider. */
export const MAX_NAME = 255;
