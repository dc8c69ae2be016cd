"""The XML files in which Mulan names a data set's labels."""

from __future__ import annotations

from xml.etree import ElementTree

from ._files import FileFormatError, open_bytes


def mulan_labels(path):
    """Names in Mulan's XML file, ``<labels><label name="..."/>...``, nested labels included."""
    with open_bytes(path) as file:
        try:
            root = ElementTree.parse(file).getroot()
        except ElementTree.ParseError as error:
            raise FileFormatError(path, error.position[0], f"not well-formed XML ({error})") from error
    names = [node.get("name") for node in root.iter() if node.tag.rpartition("}")[2] == "label"]
    if not names or None in names:
        raise FileFormatError(path, None, "holds no <label name=...> elements, or one without a name")
    return names
