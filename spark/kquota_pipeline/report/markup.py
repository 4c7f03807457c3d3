"""Elements of HTML and SVG. Text and attributes are always escaped: names of clients come from anywhere."""

from __future__ import annotations

from html import escape

_VOID = frozenset({"br", "meta", "line", "rect", "circle", "path", "polyline", "polygon"})


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def element(tag: str, *children: str, **attributes: str | float | None) -> Markup:
    """Return an element; `class_` is written class, `_` in names of attributes is written `-`.

    Numbers have at most two decimals; an attribute that is None is left out.
    """
    pairs = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(_text(value), quote=True)}"'
        for name, value in attributes.items()
        if value is not None
    )
    if tag in _VOID and not children:
        return Markup(f"<{tag}{pairs}/>")
    inner = "".join(child if isinstance(child, Markup) else escape(child, quote=False) for child in children)
    return Markup(f"<{tag}{pairs}>{inner}</{tag}>")


def joined(parts: list[Markup]) -> Markup:
    """Return elements one after the other."""
    return Markup("".join(parts))


def _text(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")
