import { useState } from 'react';

/**
 * The text of a search field, which the address gets too. What is typed is shown before the address has it: a field that
 * shows the address loses letters of who types fast. Another address, such as that of a link, replaces the text.
 */
export function useTypedSearch(address: string, toAddress: (text: string) => void) {
  const [text, setText] = useState(address);
  const [seen, setSeen] = useState(address);
  /** What the address is about to be; undefined when it is. */
  const [expected, setExpected] = useState<string>();
  if (seen !== address) {
    setSeen(address);
    if (expected === undefined) setText(address);
    else if (expected === address) setExpected(undefined);
  }
  return {
    text,
    type(next: string): void {
      setText(next);
      setExpected(next === address ? undefined : next);
      toAddress(next);
    },
  };
}
