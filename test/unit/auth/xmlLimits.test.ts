import { describe, expect, test } from '@jest/globals';
import { xmlProblem } from '../../../platform/xmlLimits.ts';

const LIMITS = { text: 20_000, elements: 100, attributes: 200, depth: 10 };
const problem = (xml: string) => xmlProblem(xml, LIMITS);
const nested = (depth: number) => '<a>'.repeat(depth) + '</a>'.repeat(depth);

describe('a document is read', () => {
  test.each([
    '<a/>',
    '<?xml version="1.0" encoding="UTF-8"?>\n<a>text &amp; more &#x3c; 1 > 0</a>\n',
    '\uFEFF<?xml version="1.0"?><a/>',
    `<p:a xmlns:p="urn:p" b = 'it is "quoted" > so'><p:b\n c="d"\t/></p:a >`,
    `<a>${'<b/>'.repeat(99)}</a>`,
    nested(10),
  ])('%j', (xml) => {
    expect(problem(xml)).toBeUndefined();
  });
});

describe('a document is refused', () => {
  test.each([
    ['a text that is too long', `<a>${'x'.repeat(20_000)}</a>`, /longer/],
    ['too many elements', `<a>${'<b/>'.repeat(100)}</a>`, /more than 100 elements/],
    ['too many attributes of one element', `<a ${'b="c" '.repeat(201)}/>`, /more than 200 attr/],
    [
      'too many namespaces of many elements',
      `<a>${'<b xmlns:p="u" xmlns:q="u" xmlns:r="u"/>'.repeat(99)}</a>`,
      /more than 200 attributes/,
    ],
    ['elements that are nested too deeply', nested(11), /deeper than 10/],
    ['depth behind what resembles an end', '<a b="/>">'.repeat(11), /deeper than 10/],
    ['a comment', '<a><!-- </a> --></a>', /more than elements/],
    ['a CDATA section', '<a><![CDATA[</a>]]></a>', /more than elements/],
    ['a document type', '<!DOCTYPE a [<!ENTITY e "x">]><a>&e;</a>', /more than elements/],
    ['a document type behind a declaration', '<?xml version="1.0"?><!DOCTYPE a><a/>', /more than/],
    ['a processing instruction', '<a><?xml-stylesheet href="x"?></a>', /more than elements/],
    ['a second declaration', '<?xml version="1.0"?><?xml version="1.0"?><a/>', /more than/],
    ['a value without quotes', '<a b=c/>', /more than elements/],
    ['a value with an element', '<a b="<c/>"/>', /more than elements/],
    ['an end without a start', '<a/></a>', /in order/],
    ['elements that overlap', '<a><b></a></b>', /in order/],
    ['an end with attributes', '<a></a b="c">', /in order/],
    ['elements without an end', '<a><b>', /in order/],
    ['no element', 'not xml at all', /no elements/],
  ])('%s', (_what, xml, reason) => {
    expect(problem(xml)).toMatch(reason);
  });
});
