"""The document about the set, which Source Description and Capability List lead to (§8, §9)."""

from io import BytesIO
from xml.etree import ElementTree as ET

import pytest

from resourcesync.errors import ConfigurationError
from resourcesync.source import naming
from resourcesync.source.foreign_documents import refuse_foreign
from resourcesync.source.naming import SourceNaming
from resourcesync.source.stored_plan import PublicationStep
from tests.support.in_memory import MemoryDocuments
from tests.support.sources.publishing import ABOUT_URI, BASE, Source, content_of, header_of


@pytest.mark.founding("0.9 §9.1", "A document describes the set", "`-o described_by=URL`")
@pytest.mark.conformance("SD02", "CA02")
def test_the_lists_lead_to_a_document_about_the_set_that_comes_back_when_it_is_lost() -> None:
    source = Source()
    source.publish()

    for name in (naming.DESCRIPTION, naming.CAPABILITY_LIST):
        assert [link.href for link in header_of(source, name).described_by] == [ABOUT_URI]
    written = content_of(source.documents, naming.ABOUT)
    root = ET.fromstring(written)
    assert root.find("*/{http://rdfs.org/ns/void#}uriSpace").text == BASE  # type: ignore[union-attr]
    source.documents.delete(naming.ABOUT)
    source.publish()
    assert content_of(source.documents, naming.ABOUT) == written
    source.documents.write(naming.ABOUT, iter((b"<other/>",)))
    source.publish()
    assert content_of(source.documents, naming.ABOUT) == written


def test_a_document_of_somebody_else_in_its_place_is_refused() -> None:
    documents = MemoryDocuments()
    documents.write(naming.ABOUT, iter((b"<theirs/>",)))

    with pytest.raises(ConfigurationError, match=r"about\.xml already exists"):
        refuse_foreign(documents, SourceNaming(base_uri=BASE), {}, PublicationStep.INITIALISE)
    assert BytesIO(content_of(documents, naming.ABOUT)).read() == b"<theirs/>"
