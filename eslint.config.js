import js from "@eslint/js";
import globals from "globals";

export default [
  js.configs.recommended,
  {
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "consistent-return": "error",
      curly: ["error", "multi-line"],
      eqeqeq: "error",
      "no-implicit-globals": "error",
      "no-shadow": "error",
      "no-unused-expressions": "error",
      "no-use-before-define": ["error", { functions: false, classes: false, variables: false }],
      "no-var": "error",
      "prefer-const": "error",
      "prefer-template": "error",
    },
  },
  { files: ["src/**/*.js"], languageOptions: { globals: globals.browser } },
  { files: ["src/**/theme.js"], languageOptions: { sourceType: "script" } },
  { files: ["tests/**/*.js", "eslint.config.js"], languageOptions: { globals: globals.node } },
];
