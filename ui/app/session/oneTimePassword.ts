let typed: string | undefined;

/** The one-time password that the user has just typed: changing it needs it again. */
export const rememberOneTimePassword = (password: string): void => void (typed = password);

export const typedOneTimePassword = (): string | undefined => typed;

export const forgetOneTimePassword = (): void => void (typed = undefined);
