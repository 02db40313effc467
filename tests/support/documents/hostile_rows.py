"""Which tests hold each row of the threat model on XML, besides those of `hostile_documents`."""

from typing import Final

_HOSTILE: Final = "tests/unit/documents/test_documents_hostile.py::"
_OCTETS: Final = "tests/unit/documents/test_documents_blocks.py::"
_LIMITS: Final = "tests/unit/documents/test_documents_limits.py::"
_WILD: Final = "tests/unit/documents/test_documents_in_the_wild.py::"
_UNUSABLE: Final = "tests/unit/documents/test_documents_unusable.py::"
_REFUSED: Final = "tests/unit/documents/test_documents_refused_entries.py::"
_DATETIMES: Final = "tests/unit/documents/test_documents_datetimes.py::"
_ROWS: Final = "tests/unit/packages/test_hostile_rows.py::"
_INDEXES: Final = "tests/unit/destination/test_hostile_rows_indexes.py::"
_CUT: Final = "tests/unit/packages/test_hostile_rows_cut_short.py::"

_DOCTYPE: Final = f"{_HOSTILE}test_any_doctype_is_refused_before_it_means_anything"
_TOKEN: Final = f"{_HOSTILE}test_a_huge_token_is_refused_before_it_costs_anything"
_ENTRY: Final = f"{_REFUSED}test_a_faulty_entry_is_refused_and_spoils_nothing_else"
_NO_LIST: Final = f"{_UNUSABLE}test_what_is_no_list_is_said_to_be_none_and_its_root_is_named"

TESTS: Final[dict[str, tuple[str, ...]]] = {
    "X01": (_DOCTYPE,),
    "X02": (_DOCTYPE,),
    "X03": (_DOCTYPE,),
    "X04": (_DOCTYPE, f"{_ROWS}test_nothing_outside_is_asked_while_a_document_is_read"),
    "X05": (_DOCTYPE,),
    "X06": (_NO_LIST, f"{_UNUSABLE}test_an_html_page_is_known_by_its_title"),
    "X07": (_NO_LIST, f"{_WILD}test_other_spellings_of_the_sitemap_namespace_are_accepted"),
    "X08": (f"{_HOSTILE}test_a_deep_document_is_refused_soon", f"{_LIMITS}test_depth"),
    "X09": (
        _TOKEN,
        f"{_HOSTILE}test_two_hundred_thousand_attributes_are_refused_soon",
        f"{_LIMITS}test_attributes",
        f"{_LIMITS}test_a_long_text_never_costs_the_document",
    ),
    "X10": (_TOKEN,),
    "X11": (f"{_HOSTILE}test_many_comments_and_instructions_are_nothing",),
    "X12": (
        f"{_OCTETS}test_gzip_is_told_by_its_first_bytes",
        f"{_OCTETS}test_gzip_in_gzip_is_not_unpacked_twice",
    ),
    "X13": (f"{_OCTETS}test_a_bomb_is_stopped_at_the_limit_in_little_memory",),
    "X14": (
        f"{_HOSTILE}test_a_document_cut_at_any_byte_is_never_a_shorter_list",
        f"{_CUT}test_a_document_of_any_kind_cut_at_any_byte_is_never_a_shorter_list",
        f"{_CUT}test_a_packed_document_of_any_kind_cut_at_any_byte_is_never_a_shorter_list",
    ),
    "X15": (
        f"{_HOSTILE}test_what_follows_the_root_is_malformed",
        f"{_HOSTILE}test_anything_but_some_blanks_or_comments_before_the_xml_declaration_is_malformed",
        f"{_WILD}test_blanks_before_the_declaration_are_passed_over",
        f"{_HOSTILE}test_a_byte_order_mark_is_accepted",
    ),
    "X16": (
        f"{_OCTETS}test_utf_8_and_utf_16_are_read",
        f"{_OCTETS}test_other_encodings_are_refused_by_their_name",
        f"{_OCTETS}test_bytes_in_other_encodings_are_malformed",
        f"{_OCTETS}test_bytes_that_are_no_utf_8_are_malformed",
    ),
    "X17": (f"{_HOSTILE}test_characters_that_xml_cannot_carry_are_malformed", _ENTRY),
    "X18": (f"{_WILD}test_comments_and_cdata_do_not_split_a_loc", _ENTRY),
    "X19": (
        _ENTRY,
        f"{_UNUSABLE}test_two_root_mds_are_malformed",
        f"{_UNUSABLE}test_a_root_md_after_the_entries_is_malformed",
    ),
    "X20": (
        f"{_WILD}test_prefixes_are_free_and_the_order_in_an_entry_too",
        f"{_WILD}test_the_prefix_rs_bound_to_another_namespace_is_foreign",
        f"{_WILD}test_attributes_with_the_resourcesync_prefix_count_as_if_they_had_none",
    ),
    "X21": (
        f"{_UNUSABLE}test_a_change_that_is_not_told_costs_its_entry_alone",
        f"{_WILD}test_the_change_may_be_spelled_in_other_ways",
    ),
    "X22": (
        f"{_DATETIMES}test_a_w3c_datetime_is_a_moment_in_utc",
        f"{_DATETIMES}test_anything_else_is_no_datetime",
    ),
    "X23": (_ENTRY,),
    "X24": (
        _ENTRY,
        f"{_REFUSED}test_digests_of_unknown_algorithms_are_kept_and_only_sixteen_count",
    ),
    "X25": (
        f"{_INDEXES}test_an_index_that_leads_to_an_index_is_refused_and_nothing_is_fetched",
        f"{_INDEXES}test_an_index_of_changes_that_leads_to_an_index_is_refused_and_nothing_changes",
        f"{_INDEXES}test_a_part_that_is_listed_twice_is_read_once",
        f"{_INDEXES}test_an_index_has_a_largest_number_of_parts",
    ),
    "X26": (
        f"{_HOSTILE}test_nothing_is_included_and_no_base_is_used",
        f"{_ROWS}test_nothing_outside_is_asked_while_a_document_is_read",
    ),
}
"""Each row of the threat model, and the tests that hold it in detail."""
