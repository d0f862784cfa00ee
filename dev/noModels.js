import { ESLintUtils } from '@typescript-eslint/utils';

/** Where Objection models are declared. */
const MODELS = /\/db\/models\//;

/**
 * ESLint rule: nothing in a file has the type of an Objection model, whatever alias it comes through. A column that is added
 * to a model must not become a change of the API that nobody sees.
 */
export const noModels = {
  meta: {
    type: 'problem',
    schema: [],
    messages: {
      found:
        '{{name}} has the type {{type}} of {{file}}: take a plain record, whose type is in domain/, instead',
    },
  },
  create(context) {
    const services = ESLintUtils.getParserServices(context);
    const checker = services.program.getTypeChecker();

    /** The model behind a type, of what it is an array or a promise of, or of a member of its union. */
    function modelBehind(type, depth = 0) {
      const file = [type.aliasSymbol, type.symbol]
        .flatMap((symbol) => symbol?.declarations ?? [])
        .map((declaration) => declaration.getSourceFile().fileName)
        .find((name) => MODELS.test(name));
      if (file !== undefined) return { file: file.replace(/.*(\/db\/)/, 'db/'), type };
      if (depth > 2) return undefined;
      const inner = [
        ...(type.isUnionOrIntersection() ? type.types : []),
        ...(checker.getTypeArguments?.(type) ?? []),
      ];
      for (const each of inner) {
        const found = modelBehind(each, depth + 1);
        if (found) return found;
      }
      return undefined;
    }

    function check(node) {
      const found = modelBehind(services.getTypeAtLocation(node));
      if (!found) return;
      context.report({
        node,
        messageId: 'found',
        data: {
          name: node.name ?? 'This',
          type: checker.typeToString(found.type).slice(0, 60),
          file: found.file,
        },
      });
    }
    return {
      ':function > Identifier.params': check,
      ':function > ObjectPattern.params Property > Identifier.value': check,
      'VariableDeclarator > Identifier.id': check,
      'VariableDeclarator > ObjectPattern.id Property > Identifier.value': check,
    };
  },
};
