import { jest } from '@jest/globals';
import type { Command } from '../../processes/cli/command.ts';
import { EXIT_USAGE, UsageError } from '../../processes/cli/program.ts';
import type { TestApp } from './app.ts';

/** Runs a command in this process, which has loaded it already; the text is what it prints. */
export async function runHere({ deps }: TestApp, command: Command, ...args: string[]) {
  let text = '';
  const write = jest.spyOn(process.stdout, 'write').mockImplementation((chunk) => {
    text += String(chunk);
    return true;
  });
  try {
    return { status: await command.read(args)(deps), text };
  } catch (error) {
    if (error instanceof UsageError) return { status: EXIT_USAGE, text };
    throw error;
  } finally {
    write.mockRestore();
  }
}
