/**
 * Work that this number of workers has not survived is what kills them. A worker that Temporal has lost for a while
 * counts, too: which of the two it was, nobody can say.
 */
export const MAX_LOST_ATTEMPTS = 5;
