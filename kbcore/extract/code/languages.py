"""The languages whose symbols are read: their files, their grammars, and the queries that find definitions.

A definition is a capture named by its kind, with the capture ``name``. The queries are KB's own: those that come with
the grammars find methods of Rust twice, and miss most of TypeScript.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

import msgspec

from kbcore import limits

if TYPE_CHECKING:
    from tree_sitter import Parser, Query

PACKAGES: Final = (
    "tree_sitter",
    "tree_sitter_go",
    "tree_sitter_java",
    "tree_sitter_javascript",
    "tree_sitter_python",
    "tree_sitter_rust",
    "tree_sitter_typescript",
)
"""The modules of the extra ``code``."""


class Language(msgspec.Struct, frozen=True):
    """A language: the module and function that give its grammar, and what is read of it.

    ``cuts`` captures what is no code: ``comment``, ``doc``; ``string``, whose text is kept with its white space;
    ``statement`` and ``block`` where white space ends these. ``wrappers`` are nodes around a definition that are a part
    of it; ``attributes`` those before it. ``calls`` finds tests that are calls.
    """

    name: str
    endings: tuple[str, ...]
    module: str
    function: str
    definitions: str
    cuts: str
    wrappers: frozenset[str] = frozenset()
    attributes: frozenset[str] = frozenset()
    ends_by_line: bool = False
    """Ends of lines end statements: a semicolon says no more."""
    calls: str = ""


_PYTHON: Final = Language(
    "python",
    (".py", ".pyi"),
    "tree_sitter_python",
    "language",
    """
(function_definition name: (identifier) @name) @function
(class_definition name: (identifier) @name) @class
(assignment left: (identifier) @name right: (lambda)) @function
(type_alias_statement left: (type) @name) @type
""",
    """
(comment) @comment
(string) @string
(block) @block
(block (_) @statement)
(module (_) @statement)
(module . (comment)* . (expression_statement (string) @doc))
(class_definition body: (block . (comment)* . (expression_statement (string) @doc)))
(function_definition body: (block . (comment)* . (expression_statement (string) @doc)))
""",
    wrappers=frozenset({"decorated_definition", "expression_statement"}),
    ends_by_line=True,
)

_FUNCTION_VALUE: Final = "[(arrow_function) (function_expression) (generator_function)]"
_SCRIPT: Final = f"""
(function_declaration name: (_) @name) @function
(generator_function_declaration name: (_) @name) @function
(class_declaration name: (_) @name) @class
(class_body (method_definition name: (_) @name) @method)
(variable_declarator name: (identifier) @name value: {_FUNCTION_VALUE}) @function
(variable_declarator name: (identifier) @name value: (class)) @class
(variable_declarator name: (identifier) @name value: (object (method_definition))) @scope
(variable_declarator name: (identifier) @name value: (object (pair value: {_FUNCTION_VALUE}))) @scope
(variable_declarator value: (object (method_definition name: (_) @name) @method))
(variable_declarator value: (object (pair key: (_) @name value: {_FUNCTION_VALUE}) @method))
(export_statement value: (object (method_definition name: (_) @name) @method))
(assignment_expression left: (member_expression) @name right: {_FUNCTION_VALUE}) @function
(export_statement "default" @name value: {_FUNCTION_VALUE} @function)
(export_statement "default" @name value: (class) @class)
"""
_SCRIPT_CUTS: Final = """
(comment) @comment
[(string) (template_string) (regex)] @string
(statement_block (_) @statement)
(program (_) @statement)
"""
_SCRIPT_CALLS: Final = """
(call_expression function: [(identifier) (member_expression)] @call
  arguments: (arguments . [(string) (template_string)] @name [(arrow_function) (function_expression)])) @test
"""
_SCRIPT_WRAPPERS: Final = frozenset(
    {"lexical_declaration", "variable_declaration", "export_statement", "expression_statement", "ambient_declaration"}
)

_JAVASCRIPT: Final = Language(
    "javascript",
    (".js", ".mjs", ".cjs", ".jsx"),
    "tree_sitter_javascript",
    "language",
    _SCRIPT + f"(class_body (field_definition property: (_) @name value: {_FUNCTION_VALUE}) @method)",
    _SCRIPT_CUTS + "(jsx_text) @string",
    wrappers=_SCRIPT_WRAPPERS,
    attributes=frozenset({"decorator"}),
    ends_by_line=True,
    calls=_SCRIPT_CALLS,
)

_TYPED: Final = f"""{_SCRIPT}
(abstract_class_declaration name: (_) @name) @class
(interface_declaration name: (_) @name) @interface
(type_alias_declaration name: (_) @name) @type
(enum_declaration name: (_) @name) @enum
(internal_module name: (_) @name) @namespace
(module name: (_) @name) @namespace
(function_signature name: (_) @name) @function
(class_body (method_signature name: (_) @name) @method)
(interface_body (method_signature name: (_) @name) @method)
(abstract_method_signature name: (_) @name) @method
(class_body (public_field_definition name: (_) @name value: {_FUNCTION_VALUE}) @method)
"""

_TYPESCRIPT: Final = Language(
    "typescript",
    (".ts", ".mts", ".cts"),
    "tree_sitter_typescript",
    "language_typescript",
    _TYPED,
    _SCRIPT_CUTS,
    wrappers=_SCRIPT_WRAPPERS,
    attributes=frozenset({"decorator"}),
    ends_by_line=True,
    calls=_SCRIPT_CALLS,
)

_TSX: Final = msgspec.structs.replace(
    _TYPESCRIPT, name="tsx", endings=(".tsx",), function="language_tsx", cuts=_SCRIPT_CUTS + "(jsx_text) @string"
)

_GO: Final = Language(
    "go",
    (".go",),
    "tree_sitter_go",
    "language",
    """
(function_declaration name: (identifier) @name) @function
(method_declaration receiver: (parameter_list) @receiver name: (field_identifier) @name) @method
(type_spec name: (type_identifier) @name type: (struct_type)) @struct
(type_spec name: (type_identifier) @name type: (interface_type)) @interface
(type_spec name: (type_identifier) @name) @type
(type_alias name: (type_identifier) @name) @type
(method_elem name: (field_identifier) @name) @method
(var_spec name: (identifier) @name value: (expression_list . (func_literal))) @function
(short_var_declaration
  left: (expression_list . (identifier) @name .) right: (expression_list . (func_literal) .)) @function
""",
    """
(comment) @comment
[(interpreted_string_literal) (raw_string_literal) (rune_literal)] @string
(statement_list (_) @statement)
""",
    wrappers=frozenset({"type_declaration", "var_declaration"}),
    ends_by_line=True,
)

_RUST: Final = Language(
    "rust",
    (".rs",),
    "tree_sitter_rust",
    "language",
    """
(function_item name: (_) @name) @function
(function_signature_item name: (_) @name) @function
(struct_item name: (_) @name) @struct
(union_item name: (_) @name) @struct
(enum_item name: (_) @name) @enum
(trait_item name: (_) @name) @trait
(type_item name: (_) @name) @type
(associated_type name: (_) @name) @type
(mod_item name: (_) @name body: (_)) @module
(macro_definition name: (_) @name) @macro
(impl_item type: (_) @name) @scope
(let_declaration pattern: (identifier) @name value: (closure_expression)) @function
(const_item name: (_) @name value: (closure_expression)) @function
(static_item name: (_) @name value: (closure_expression)) @function
""",
    """
[(line_comment) (block_comment)] @comment
[(string_literal) (raw_string_literal) (char_literal)] @string
""",
    attributes=frozenset({"attribute_item"}),
)

_JAVA: Final = Language(
    "java",
    (".java",),
    "tree_sitter_java",
    "language",
    """
(class_declaration name: (_) @name) @class
(interface_declaration name: (_) @name) @interface
(enum_declaration name: (_) @name) @enum
(record_declaration name: (_) @name) @record
(annotation_type_declaration name: (_) @name) @annotation
(method_declaration name: (_) @name) @method
(annotation_type_element_declaration name: (_) @name) @method
(constructor_declaration name: (_) @name) @constructor
(compact_constructor_declaration name: (_) @name) @constructor
(variable_declarator name: (identifier) @name value: (lambda_expression)) @function
""",
    """
[(line_comment) (block_comment)] @comment
[(string_literal) (character_literal)] @string
""",
    wrappers=frozenset({"field_declaration", "local_variable_declaration"}),
)

LANGUAGES: Final = (_PYTHON, _JAVASCRIPT, _TYPESCRIPT, _TSX, _GO, _RUST, _JAVA)
_BY_ENDING: Final[Mapping[str, Language]] = {ending: one for one in LANGUAGES for ending in one.endings}
_HEAD_BYTES: Final = 2 * limits.KIB
_GENERATED: Final = re.compile(
    rb"^[^\w\n]*+Code generated\b.*\bDO NOT EDIT\b"
    rb"|^[ \t]*+(?:#|//|/?\*|\"\"\"|''').*(?:@generated\b|\bautomatically generated\b.*\bdo not edit\b)",
    re.IGNORECASE | re.MULTILINE,
)
_GENERATED_NAME: Final = re.compile(r"(?:\.min\.[cm]?js|\.bundle\.js|\.pb\.go|_pb2(?:_grpc)?\.pyi?)$")


def language_of(path: str) -> Language | None:
    """Return the language of a file, by the ending of its name."""
    return _BY_ENDING.get(posixpath.splitext(path)[1].lower())


def is_generated(path: str, data: bytes) -> bool:
    """Tell whether a file is generated, by its name or by what its beginning says."""
    return bool(_GENERATED_NAME.search(path) or _GENERATED.search(data, 0, _HEAD_BYTES))


def missing_modules() -> list[str]:
    """Return the modules of the extra ``code`` that cannot be imported."""
    return [name for name in PACKAGES if not _can_import(name)]


def _can_import(name: str) -> bool:
    """Tell whether a module is installed, without importing it: that takes longer than most commands."""
    try:
        return find_spec(name) is not None
    except ValueError:
        return False


class Tools(msgspec.Struct, frozen=True):
    """The parser of a language with its compiled queries."""

    parser: Parser
    definitions: Query
    cuts: Query
    calls: Query | None


@lru_cache(maxsize=len(LANGUAGES))
def tools_of(language: Language) -> Tools:
    """Return the parser and the queries of a language, the same ones each time.

    Raises: ``ImportError`` where the extra ``code`` is not installed.
    """
    import tree_sitter  # noqa: PLC0415 - optional, and only source code needs it

    grammar = tree_sitter.Language(getattr(import_module(language.module), language.function)())
    calls = tree_sitter.Query(grammar, language.calls) if language.calls else None
    return Tools(
        tree_sitter.Parser(grammar),
        tree_sitter.Query(grammar, language.definitions),
        tree_sitter.Query(grammar, language.cuts),
        calls,
    )
