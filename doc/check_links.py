"""Every link inside of the built pages leads somewhere, and nothing is loaded from elsewhere.

    python doc/check_links.py doc/_build/html

Prints what is wrong, a line each, and ends with status 1 if there is anything.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADS = {"script": "src", "img": "src", "source": "src", "iframe": "src", "object": "data"}


class Page(HTMLParser):
    """Names that a link can lead to, and where the page's own links lead."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.links, self.loaded = {"", "top"}, [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors |= {attributes[key] for key in ("id", "name") if attributes.get(key)}
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"] or "")
        elif tag == "link":
            # rel="canonical" and the like are read by nobody's browser
            fetched = {"stylesheet", "icon", "preload"} & set(attributes.get("rel", "").split())
            (self.loaded if fetched else self.links).append(attributes.get("href") or "")
        elif tag in LOADS and attributes.get(LOADS[tag]):
            self.loaded.append(attributes[LOADS[tag]])


def html_files(root):
    # the theme keeps a template among its static files
    return [path for path in sorted(root.rglob("*.html")) if "_static" not in path.relative_to(root).parts]


def wrong_links(root):
    """(page, link, what is wrong) of every link that leads nowhere."""
    pages = {path.resolve(): Page(path) for path in html_files(root)}
    for path, page in pages.items():
        name = path.relative_to(root.resolve())
        for link in [*page.links, *page.loaded]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loaded and parts.scheme != "data":
                    yield name, link, "is loaded from elsewhere"
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.is_file():
                yield name, link, "no such file"
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                yield name, link, "no such anchor on the page"


def main(folder):
    root = Path(folder)
    if not (root / "index.html").is_file():
        sys.exit(f"{folder} holds no index.html")
    wrong = list(wrong_links(root))
    for name, link, problem in wrong:
        print(f"{name}: {link}: {problem}")
    pages = len(html_files(root))
    print(f"{pages} pages, {len(wrong)} wrong links")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
