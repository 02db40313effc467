"""No two records have one place, whatever their identifiers are."""

from hypothesis import given, settings
from hypothesis import strategies as st

from resourcesync_oai.metadata_files import file_name, path_of

PREFIXES = ("oai_dc", "mods", "a.b")
parts = st.text("/:.~%é aAdx_-oi2EmODS", max_size=12) | st.sampled_from(
    ["oai_dc", "mods.xml", "oai_dc.xml~d", "~-", "", ".", "..", "~id", "x" * 200, "x" * 199 + "y"]
)
identifiers = st.builds(
    lambda begin, rest: begin + "/".join(rest),
    st.sampled_from(["oai:r:", "oai:s:", "", "oai:r"]),
    st.lists(parts, max_size=18),
)
records = st.tuples(identifiers, st.sampled_from(PREFIXES))


@settings(max_examples=40)
@given(told=st.lists(records, min_size=2, max_size=6, unique=True), has_suffix=st.booleans())
def test_every_record_has_a_file_of_its_own(told: list[tuple[str, str]], has_suffix: bool) -> None:
    names = {prefix: file_name(prefix, ".xml" if has_suffix else "") for prefix in PREFIXES}
    taken = frozenset(names.values())
    places = [path_of(identifier, names[prefix], "r", taken) for identifier, prefix in told]

    assert len(set(places)) == len(told)
    folders = {
        "/".join(place.split("/")[:depth])
        for place in places
        for depth in range(1, place.count("/") + 1)
    }
    assert not folders & set(places), "a file stands where another one needs a folder"
    for place in places:
        assert place.startswith("resource/")
        for name in place.split("/"):
            assert 0 < len(name.encode()) <= 255
            assert name.isascii()
            assert not name.startswith(".")
            assert not name.endswith(".")
