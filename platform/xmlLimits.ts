/** Bounds of a document, checked before a parser sees it. `text` counts UTF-16 code units. */
export type XmlLimits = {
  text: number;
  elements: number;
  /** Namespace declarations included. */
  attributes: number;
  depth: number;
};

/**
 * A tag as every parser reads it: names without delimiters, quoted values without `<`. Comments,
 * CDATA sections, document types and processing instructions do not match.
 */
const TAG = /<(\/?)([^\s<>/="'!?&]+)((?:\s+[^\s<>/="'&]+\s*=\s*(?:"[^<"]*"|'[^<']*'))*)\s*(\/?)>/y;

const DECLARATION = /^\uFEFF?<\?xml\s[^<>?]*\?>/;
const ATTRIBUTE = /=\s*["']/g;

/**
 * Returns why `xml` is refused, or undefined. Reads it once, in linear time and without recursion:
 * XPath searches and canonicalization take time that grows much faster than the document. A
 * document with anything but elements and text is refused, so that what was counted is what a
 * parser finds.
 */
export function xmlProblem(xml: string, limits: XmlLimits): string | undefined {
  if (xml.length > limits.text) return `it is longer than ${limits.text} characters`;
  const open: string[] = [];
  let elements = 0;
  let attributes = 0;
  let at = xml.indexOf('<', DECLARATION.exec(xml)?.[0].length ?? 0);
  while (at !== -1) {
    TAG.lastIndex = at;
    const [whole = '', isEnd, name = '', attributeText = '', isEmpty] = TAG.exec(xml) ?? [];
    if (whole === '') return 'it has more than elements, attributes and text';
    if (isEnd === '/') {
      if (open.pop() !== name || attributeText !== '' || isEmpty === '/')
        return 'its elements do not end in order';
    } else {
      elements += 1;
      attributes += attributeText.match(ATTRIBUTE)?.length ?? 0;
      if (elements > limits.elements) return `it has more than ${limits.elements} elements`;
      if (attributes > limits.attributes) return `it has more than ${limits.attributes} attributes`;
      if (isEmpty !== '/') open.push(name);
      if (open.length > limits.depth) return `it is nested deeper than ${limits.depth} elements`;
    }
    at = xml.indexOf('<', at + whole.length);
  }
  if (elements === 0) return 'it has no elements';
  return open.length > 0 ? 'its elements do not end in order' : undefined;
}
