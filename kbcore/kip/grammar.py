"""The grammar of KIP as data: what the reference shows, what the tests derive sentences from, and the list of keywords.

Notation: ``"X"`` is written as it is; ``A?`` none or one, ``A*`` any number, ``A+`` one or more; ``|`` parts
alternatives. Names in capitals are tokens, which ``TOKENS`` explains. The first rule is that of a whole text.
"""

from __future__ import annotations

import re
from typing import Final

GRAMMAR: Final = """\
command     ::= query | upsert+ | delete | update | merge | describe | search | export

query       ::= "FIND" "(" expression ("," expression)* ")" where when? order? limit? cursor?
when        ::= "AT" (WHOLE | STRING | PARAMETER)
expression  ::= path | aggregate
aggregate   ::= ("COUNT" | "SUM" | "AVG" | "MIN" | "MAX") "(" "DISTINCT"? path ")"
order       ::= "ORDER" "BY" sort ("," sort)*
sort        ::= expression ("ASC" | "DESC")?
limit       ::= "LIMIT" count
cursor      ::= "CURSOR" text

where       ::= "WHERE" group
group       ::= "{" clause+ "}"
clause      ::= VARIABLE matcher | VARIABLE? triple | filter | ("NOT" | "OPTIONAL" | "UNION") group
matcher     ::= identity | "{" "type" ":" text "}" | "{" "name" ":" text "}"
identity    ::= "{" "id" ":" text "}"
              | "{" "type" ":" text "," "name" ":" text "}"
              | "{" "name" ":" text "," "type" ":" text "}"
triple      ::= "(" "id" ":" text ")" | "(" end "," predicate "," end ")"
end         ::= VARIABLE | matcher | triple
predicate   ::= VARIABLE | text | text "{" LEAST ("," MOST?)? "}" | text ("|" text)+
filter      ::= "FILTER" "(" condition ")"
condition   ::= all ("||" all)*
all         ::= claim ("&&" claim)*
claim       ::= "!"? ("(" condition ")" | test | operand comparison operand)
comparison  ::= "==" | "!=" | "<" | "<=" | ">" | ">="
test        ::= ("CONTAINS" | "STARTS_WITH" | "ENDS_WITH" | "REGEX") "(" operand "," operand ")"
              | "IN" "(" operand "," (PARAMETER | "[" (scalar ("," scalar)*)? "]") ")"
              | ("IS_NULL" | "IS_NOT_NULL") "(" operand ")"
operand     ::= path | scalar | "NOW" "(" text? ")"
path        ::= VARIABLE | PATH

upsert      ::= "UPSERT" "{" block+ "}" where? metadata?
block       ::= "CONCEPT" VARIABLE? "{" identity version? attributes? links? "}" metadata?
              | "PROPOSITION" VARIABLE? "{" fact version? attributes? "}" metadata?
fact        ::= "(" "id" ":" text ")" | "(" target "," text "," target ")"
target      ::= VARIABLE | identity | fact
version     ::= "EXPECT" "VERSION" count
attributes  ::= "SET" "ATTRIBUTES" map
links       ::= "SET" "PROPOSITIONS" "{" link (","? link)* ","? "}"
link        ::= "(" text "," target ")" metadata?
metadata    ::= "WITH" "METADATA" map
delete      ::= "DELETE" "CONCEPT" VARIABLE "DETACH" where
              | "DELETE" "PROPOSITIONS" VARIABLE where
              | "DELETE" ("ATTRIBUTES" | "METADATA") "{" text ("," text)* "}" "FROM" VARIABLE where
update      ::= "UPDATE" TARGET (changes more? | more) where limit?
changes     ::= "SET" "ATTRIBUTES" (PARAMETER | "{" (change ("," change)* ","?)? "}")
more        ::= "SET" "METADATA" (PARAMETER | "{" (change ("," change)* ","?)? "}")
change      ::= KEY ":" (value | WAY | calculation)
calculation ::= ("ADD" | "MUL" | "COALESCE") "(" part "," part ")" | "CLAMP" "(" part "," part "," part ")"
part        ::= number | WAY | calculation
merge       ::= "MERGE" "CONCEPT" VARIABLE "INTO" VARIABLE where

describe    ::= "DESCRIBE" ("PRIMER" | "DOMAINS" | "SYNTAX")
              | "DESCRIBE" ("CONCEPT" | "PROPOSITION") "TYPES" limit? cursor?
              | "DESCRIBE" ("CONCEPT" | "PROPOSITION") "TYPE" text
              | "DESCRIBE" "NEIGHBOURHOOD" identity limit? ("BUDGET" count)?
search      ::= "SEARCH" ("CONCEPT" | "PROPOSITION") text ("WITH" "TYPE" text)?
                ("WITH" "ATTRIBUTES")? ("MODE" text)? ("THRESHOLD" number)? limit? cursor?
export      ::= "EXPORT" VARIABLE where limit? cursor?

map         ::= PARAMETER | object
object      ::= "{" (member ("," member)* ","?)? "}"
member      ::= KEY ":" value
value       ::= scalar | object | "[" (value ("," value)* ","?)? "]"
scalar      ::= text | number | "true" | "false" | "null"
text        ::= STRING | PARAMETER
number      ::= NUMBER | PARAMETER
count       ::= WHOLE | PARAMETER
"""

TOKENS: Final = (
    ("VARIABLE", "`?` and a name: `?task`. A name is letters, digits and `_` of ASCII, not beginning with a digit."),
    ("PATH", "A variable and one name or more, each after a dot: `?task.attributes.status`. No blanks inside."),
    ("TARGET, WAY", "A variable, and a variable or path that begins with that one."),
    ("STRING", 'A JSON text in double quotes, on one line; escapes as in JSON (`\\"`, `\\n`, `\\u00e9`).'),
    ("NUMBER, WHOLE", "A JSON number; one of digits only (of LIMIT at least 1). At most 64 bits."),
    ("LEAST, MOST", "Fewest and most hops: whole numbers or placeholders, at most 10, LEAST not above MOST."),
    ("KEY", "A name or a STRING; each key once in its braces."),
    ("PARAMETER", "`:` and a name: the placeholder for a value of the kind that is expected here."),
)
"""The names in capitals, in the order of their first use by a reader."""

KEYWORDS: Final = frozenset(re.findall(r'"([A-Z_]+|true|false|null)"', GRAMMAR))
"""Words with a meaning of their own. Keys, variables and parameters may be called so all the same."""
