/**
 * Copies a text. Where the page is not a secure context, browsers have no clipboard; the old way by a
 * selected text remains. Returns false if neither works.
 */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

function copyBySelection(text: string): boolean {
  const field = document.createElement('textarea');
  const focused = document.activeElement;
  field.value = text;
  field.readOnly = true;
  field.style.position = 'fixed';
  field.style.opacity = '0';
  document.body.append(field);
  field.select();
  // The only way without a secure context.
  // oxlint-disable-next-line typescript/no-deprecated
  const isCopied = document.execCommand('copy');
  field.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return isCopied;
}

/** Offers a text as a file. */
export const downloadText = (name: string, parts: readonly string[], type = 'text/plain'): void =>
  downloadBlob(name, new Blob([...parts], { type: `${type};charset=utf-8` }));

/** Offers data as a file. */
export function downloadBlob(name: string, data: Blob): void {
  const url = URL.createObjectURL(data);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // The download has started when the click returns; browsers that read later need the URL a while.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
