"""Formulas as MathML, which browsers draw themselves: no script, no font, no network.

docutils converts TeX. A formula that it cannot convert is a warning at its line, hence an error with ``-W``.
"""

import re

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.locale import _
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

logger = logging.getLogger(__name__)

# TeX that docutils spells differently
SPELLINGS = (
    (re.compile(r"\\(big|Big|bigg|Bigg)(?![A-Za-z])"), r"\\\1l "),
    (re.compile(r"\\dots[bcm]?(?![A-Za-z])"), r"\\ldots "),
    (re.compile(r"\\iff(?![A-Za-z])"), r"\\Leftrightarrow "),
    (re.compile(r"\\operatorname\*"), r"\\operatorname"),
    (re.compile(r"\\arg\s*\\(min|max)(?![A-Za-z])"), r"\\arg\\,\\\1 "),
    (re.compile(r"\\([td]?frac)\s*(\d)\s*(\d)"), r"\\\1{\2}{\3}"),
    # TeX sets a thin space before an operator's name
    (re.compile(r"(?<=[\w})|])\s*\\(log|exp|max|min|sup|inf)(?![A-Za-z])"), r"\\,\\\1"),
    (re.compile(r"\\(?:begin|end)\{(?:align|equation|gather|split)\*?\}"), ""),
)
# a bracket that no \left or \right stretches keeps its size, and a bar is one: no space around it
BRACKET = re.compile(r'<mo(?: class="mathopen")?(?: stretchy="false")?>([|‖{}⟨⟩⌊⌋⌈⌉])</mo>')
# what stands after \left or \right is to stretch
STRETCHED = re.compile(r"\\(?:left|right)\s*(\\[A-Za-z]+|\\?.)")
GLYPHS = {
    "|": "|", r"\vert": "|", r"\lvert": "|", r"\rvert": "|",
    r"\|": "‖", r"\Vert": "‖", r"\lVert": "‖", r"\rVert": "‖",
    r"\{": "{", r"\lbrace": "{", r"\}": "}", r"\rbrace": "}",
    r"\langle": "⟨", r"\rangle": "⟩",
    r"\lfloor": "⌊", r"\rfloor": "⌋", r"\lceil": "⌈", r"\rceil": "⌉",
}  # fmt: skip


def to_mathml(tex, block):
    """MathML of a formula; raises MathError where it has none."""
    for pattern, spelling in SPELLINGS:
        tex = pattern.sub(spelling, tex)
    if block and r"\\" in tex and r"\begin" not in tex:
        tex = rf"\begin{{aligned}}{tex}\end{{aligned}}"
    try:
        mathml = tex2mathml(tex, as_block=block)
    except AttributeError as error:  # how docutils fails at an & outside of a table
        raise MathError(f"cannot be parsed: {error}") from error
    stretched = "".join(GLYPHS.get(bracket, "") for bracket in STRETCHED.findall(tex))

    def with_fixed_size(match):
        bracket = match[1]
        return (
            match[0] if bracket in stretched else f'<mo stretchy="false" lspace="0" rspace="0">{bracket}</mo>'
        )

    return BRACKET.sub(with_fixed_size, mathml)


def write(translator, node, tex, block):
    try:
        translator.body.append(to_mathml(tex, block))
    except MathError as error:
        logger.warning("formula %r: %s", tex, error, location=node, type="mathml")
        translator.body.append(f"<code>{translator.encode(tex)}</code>")


def visit_inline(translator, node):
    translator.body.append(translator.starttag(node, "span", "", CLASS="math notranslate nohighlight"))
    write(translator, node, node.astext(), False)
    translator.body.append("</span>")
    raise nodes.SkipNode


def visit_block(translator, node):
    translator.body.append(translator.starttag(node, "div", CLASS="math notranslate nohighlight"))
    if node["number"]:
        translator.body.append(f'<span class="eqno">({get_node_equation_number(translator, node)})')
        translator.add_permalink_ref(node, _("Link to this equation"))
        translator.body.append("</span>")
    # Sphinx separates the formulas of one directive by empty lines
    for tex in re.split(r"\n\s*\n", node.astext()):
        if tex.strip():
            write(translator, node, tex, True)
    translator.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
