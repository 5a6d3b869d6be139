"""REFI-QDA codebooks: as other programs write them, as ours reads back, and as an attacker writes them."""

import random
from xml.etree import ElementTree

import pytest

from topicsteer.corpora import ReadError
from topicsteer.labels.codebook import Codebook, Topic
from topicsteer.labels.codebook_files import DEEPEST, LARGEST, MOST_CODES, NAMESPACE, parse_codebook, write_codebook
from topicsteer.model.settings import read_topics

# The headers that Taguette and NVivo write; NVivo has another spelling of the namespace and codes inside codes.
TAGUETTE = """<?xml version="1.0" encoding="utf-8"?>
<CodeBook xmlns="urn:QDA-XML:codebook:1.0" origin="Taguette 1.4"><Codes>
<Code guid="0D62985D-B147-5D01-A9B5-CAE5DCD98342" name="interesting" isCodable="true">
<Description>Further review
required</Description></Code>
<Code guid="DFE5C38E-9449-5959-A1F7-E3D895CFA87F" name="people" isCodable="true"/>
</Codes></CodeBook>"""
NVIVO = """\ufeff<?xml version="1.0" encoding="utf-8" standalone="no" ?>
<CodeBook origin="NVivo 12" xmlns="urn:QDA-XML:codebook:1:0"
 xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="urn:QDA-XML:codebook:1:0 Codebook.xsd">
<Codes><Code guid="a" isCodable="false" name="Drinks"><Description>only a folder</Description>
<Code guid="b" isCodable="true" name="Tea" color="#00FF00"><Description>hot &amp; green &lt;b&gt;</Description>
<Code guid="c" isCodable="true" name="other"/></Code>
<Code guid="d" isCodable="true" name="other"/></Code></Codes><Sets/></CodeBook>"""


def test_codebooks_of_other_programs():
    found = parse_codebook(TAGUETTE.encode())
    assert [(t.name, t.description) for t in found.codebook] == [
        ("interesting", "Further review required"),
        ("people", ""),
    ]
    assert found.notes == ()
    found = parse_codebook(NVIVO.encode())
    assert [(t.name, t.description) for t in found.codebook] == [
        ("Tea", "hot & green <b>"),
        ("Drinks / Tea / other", ""),
        ("Drinks / other", ""),
    ]
    assert found.notes == ("3 codes lie inside others. They become topics on one level.",)


def test_topics_come_back(tmp_path):
    odd = 'say "tea" & <milk> – 茶 \U0001f375'
    book = Codebook((Topic(1, odd, description="line one\nline two <&>"), Topic(7, "b", keywords=("pot", "cup"))))
    path = tmp_path / "codebook.qdc"
    path.write_text(write_codebook(book, {1: "#3b7dd8"}), encoding="utf-8")
    tree = ElementTree.parse(path).getroot()
    codes = tree.findall(f"{{{NAMESPACE}}}Codes/{{{NAMESPACE}}}Code")
    assert [code.get("name") for code in codes] == [odd, "b"]
    assert codes[0].attrib.keys() == {"name", "isCodable", "guid", "color"}
    assert len({code.get("guid") for code in codes}) == 2
    found = read_topics(path)
    assert [(t.name, t.description) for t in found.codebook] == [
        (odd, "line one line two <&>"),
        ("b", "Keywords: pot, cup"),
    ]
    parse_codebook(write_codebook(Codebook((Topic(1, "bell \x07 \ud800"),))).encode())


BOMB = '<!DOCTYPE c [<!ENTITY a "aaaaaaaaaa">' + "".join(
    f'<!ENTITY {chr(98 + k)} "{f"&{chr(97 + k)};" * 10}">' for k in range(9)
)
WRONG = {
    "entities": (BOMB + ']><CodeBook><Codes><Code name="&j;"/></Codes></CodeBook>', "document type"),
    "a file of the machine": ('<!DOCTYPE c [<!ENTITY x SYSTEM "file:///etc/passwd">]><CodeBook/>', "document type"),
    "another root": ("<Project/>", "begins with <CodeBook>"),
    "no XML": ("topic,keywords\ntea,pot\n", "no XML file"),
    "cut off": (TAGUETTE[:300], "no XML file"),
    "empty": ("", "no XML file"),
    "an encoding": ('<?xml version="1.0" encoding="uf-8"?><CodeBook/>', "unknown encoding: uf-8; export it as UTF-8"),
    "no codes": ("<CodeBook><Codes/></CodeBook>", "no code in it"),
    "too deep": ("<CodeBook>" + '<Code name="a">' * DEEPEST + "</Code>" * DEEPEST + "</CodeBook>", "levels"),
    "too many": ("<CodeBook>" + '<Code name="a"/>' * (MOST_CODES + 1) + "</CodeBook>", "more than 20,000 codes"),
    "too large": (" " * (LARGEST + 2), "up to 8 MB"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_and_hostile_codebooks_are_refused_with_the_reason(tmp_path, name):
    content, reason = WRONG[name]
    path = tmp_path / "codebook.qdc"
    path.write_text(content)
    with pytest.raises(ReadError, match=rf"codebook\.qdc: .*{reason}"):
        read_topics(path)


def test_no_damaged_codebook_gives_another_exception():
    generator = random.Random(0)
    for _ in range(1500):
        data = bytearray(generator.choice((TAGUETTE, NVIVO)).encode())
        for _ in range(generator.randint(1, 6)):
            place = generator.randrange(len(data))
            data[place : place + generator.randint(0, 9)] = generator.randbytes(generator.randint(0, 4))
        try:
            names = [topic.name for topic in parse_codebook(bytes(data)).codebook]
        except ValueError:
            continue
        assert len(set(names)) == len(names)
