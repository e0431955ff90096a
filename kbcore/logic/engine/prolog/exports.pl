/*  The names that libraries of SWI-Prolog export: the same list for every engine.

    Data only. The libraries of two versions do not export the same. What a goal may call, and what a clause may define, is
    therefore decided by this list and not by the libraries that an engine happens to have. It is of the versions 9.0.4
    (native) and 10.1.10 (WebAssembly).
*/
:- module(kb_exports, [offered/2, withheld/2, unlisted/2, only_when_loaded/1]).

%   offered(Library, Names): exports of a library that can be loaded that a goal may call: both versions have them, and
%   allowed.pl and library(sandbox) allow them in both.

offered(aggregate, [aggregate/3, aggregate/4, aggregate_all/3, aggregate_all/4, foreach/2, free_variables/4]).
offered(apply, [convlist/3, exclude/3, foldl/4, foldl/5, foldl/6, foldl/7, include/3, maplist/2, maplist/3, maplist/4,
    maplist/5, partition/4, partition/5, scanl/4, scanl/5, scanl/6, scanl/7]).
offered(assoc, [assoc_to_keys/2, assoc_to_list/2, assoc_to_values/2, del_assoc/4, del_max_assoc/4, del_min_assoc/4,
    empty_assoc/1, gen_assoc/3, get_assoc/3, get_assoc/5, is_assoc/1, list_to_assoc/2, map_assoc/2, map_assoc/3,
    max_assoc/3, min_assoc/3, ord_list_to_assoc/2, put_assoc/4]).
offered(clpb, [labeling/1, sat/1, sat_count/2, taut/2, weighted_maximum/3]).
offered(clpfd, [(#/\)/2, (#<)/2, (#<==)/2, (#<==>)/2, (#=)/2, (#=<)/2, (#==>)/2, (#>)/2, (#>=)/2, (#\)/1, (#\)/2,
    (#\/)/2, (#\=)/2, (in)/2, (in_set)/2, (ins)/2, all_different/1, all_distinct/1, automaton/3, automaton/8, chain/2,
    circuit/1, cumulative/1, cumulative/2, disjoint2/1, element/3, empty_fdset/1, empty_interval/2, fd_degree/2,
    fd_dom/2, fd_inf/2, fd_set/2, fd_size/2, fd_sup/2, fd_var/1, fdset_add_element/3, fdset_complement/2,
    fdset_del_element/3, fdset_disjoint/2, fdset_eq/2, fdset_intersect/2, fdset_intersection/3, fdset_interval/3,
    fdset_max/2, fdset_member/2, fdset_min/2, fdset_parts/4, fdset_singleton/2, fdset_size/2, fdset_subset/2,
    fdset_subtract/3, fdset_to_list/2, fdset_to_range/2, fdset_union/2, fdset_union/3, global_cardinality/2,
    global_cardinality/3, indomain/1, is_fdset/1, label/1, labeling/2, lex_chain/1, list_to_fdset/2, range_to_fdset/2,
    scalar_product/4, serialized/2, sum/3, transpose/2, tuples_in/2, zcompare/3]).
offered(clpr, [bb_inf/3, bb_inf/5, clp_type/2, dump/3, entailed/1, inf/2, inf/4, maximize/1, minimize/1, ordering/1,
    sup/2, sup/4, {}/1]).
offered(dcg/basics, [alpha_to_lower/3, atom/3, blank/2, blanks/2, blanks_to_nl/2, digit/3, digits/3, eol/2, eos/2,
    float/3, integer/3, nonblank/3, nonblanks/3, number/3, prolog_var_name/3, remainder/3, string/3, string_without/4,
    white/2, whites/2, xdigit/3, xdigits/3, xinteger/3]).
offered(dcg/high_order, [foreach/4, foreach/5, optional/4, sequence/4, sequence/5, sequence/7]).
offered(dicts, [dict_fill/4, dict_keys/2, dict_size/2, dicts_join/3, dicts_join/4, dicts_same_keys/2,
    dicts_same_tag/2, dicts_slice/3]).
offered(dif, [dif/2]).
offered(error, [current_type/3, domain_error/2, existence_error/2, existence_error/3, instantiation_error/1,
    is_of_type/2, must_be/2, permission_error/3, representation_error/1, resource_error/1, syntax_error/1,
    type_error/2, uninstantiation_error/1]).
offered(heaps, [add_to_heap/4, delete_from_heap/4, empty_heap/1, get_from_heap/4, heap_size/2, heap_to_list/2,
    is_heap/1, list_to_heap/2, merge_heaps/3, min_of_heap/3, min_of_heap/5, singleton_heap/3]).
offered(lists, [append/2, append/3, clumped/2, delete/3, flatten/2, intersection/3, is_set/1, last/2, list_to_set/2,
    max_list/2, max_member/2, max_member/3, member/2, memberchk/2, min_list/2, min_member/2, min_member/3, nextto/3,
    nth0/3, nth0/4, nth1/3, nth1/4, numlist/3, permutation/2, prefix/2, proper_length/2, reverse/2, same_length/2,
    select/3, select/4, selectchk/3, selectchk/4, subset/2, subtract/3, sum_list/2, union/3]).
offered(nb_set, [add_nb_set/2, add_nb_set/3, empty_nb_set/1, gen_nb_set/2, nb_set_to_list/2, size_nb_set/2]).
offered(occurs, [contains_term/2, contains_var/2, free_of_term/2, free_of_var/2, occurrences_of_term/3,
    occurrences_of_var/3, sub_term/2, sub_term_shared_variables/3, sub_var/2]).
offered(option, [dict_options/2, merge_options/3, option/2, option/3, select_option/3, select_option/4]).
offered(ordsets, [is_ordset/1, list_to_ord_set/2, ord_add_element/3, ord_del_element/3, ord_disjoint/2, ord_empty/1,
    ord_intersect/2, ord_intersect/3, ord_intersection/2, ord_intersection/3, ord_intersection/4, ord_memberchk/2,
    ord_selectchk/3, ord_seteq/2, ord_subset/2, ord_subtract/3, ord_symdiff/3, ord_union/2, ord_union/3,
    ord_union/4]).
offered(pairs, [group_pairs_by_key/2, map_list_to_pairs/3, pairs_keys/2, pairs_keys_values/3, pairs_values/2,
    transpose_pairs/2]).
offered(random, [maybe/0, maybe/1, maybe/2, random/1, random/3, random_between/3, random_member/2, random_perm2/4,
    random_permutation/2, random_select/3, random_subseq/3, randseq/3, randset/3]).
offered(rbtrees, [is_rbtree/1, list_to_rbtree/2, ord_list_to_rbtree/2, rb_apply/4, rb_clone/3, rb_del_max/4,
    rb_del_min/4, rb_delete/3, rb_delete/4, rb_empty/1, rb_fold/4, rb_in/3, rb_insert/4, rb_insert_new/4, rb_keys/2,
    rb_lookup/3, rb_map/2, rb_map/3, rb_max/3, rb_min/3, rb_new/1, rb_next/4, rb_partial_map/4, rb_previous/4,
    rb_size/2, rb_update/4, rb_update/5, rb_visit/2]).
offered(simplex, [assignment/2, constraint/3, constraint/4, constraint_add/4, gen_state/1, gen_state_clpr/1,
    gen_state_clpr/2, maximize/3, minimize/3, objective/2, shadow_price/3, transportation/4, variable_value/3]).
offered(solution_sequences, [call_nth/2, distinct/1, distinct/2, limit/2, offset/2, order_by/2]).
offered(sort, [predsort/3]).
offered(strings, [dedent_lines/3, indent_lines/3, string_lines/2]).
offered(terms, [cyclic_term/1, foldsubterms/4, foldsubterms/5, mapargs/3, mapsubterms/3, same_functor/2,
    same_functor/3, same_functor/4, subsumes/2, subsumes_chk/2, term_factorized/3, term_hash/2, term_hash/4,
    term_size/2, term_subsumer/3, term_variables/3, variant/2]).
offered(ugraphs, [add_edges/3, add_vertices/3, complement/2, compose/3, connect_ugraph/3, del_edges/3, del_vertices/3,
    edges/2, neighbors/3, neighbours/3, reachable/3, top_sort/2, transitive_closure/2, transpose_ugraph/2,
    ugraph_union/3, vertices/2, vertices_edges_to_ugraph/3]).
offered(varnumbers, [max_var_number/3, numbervars/1, varnumbers/2, varnumbers/3, varnumbers_names/3]).
offered(when, [when/2]).
offered(yall, [is_lambda/1]).

%   withheld(Library, Names): the other exports of these libraries, of any version. A goal that calls one which no clause
%   defines is refused. A clause may define it.

withheld(aggregate, [foldall/4]).
withheld(clpb, [random_labeling/2]).
withheld(dcg/basics, [csym/3]).
withheld(dicts, [dict_no_fill/3, dicts_to_compounds/4, dicts_to_same_keys/3, mapdict/2, mapdict/3, mapdict/4]).
withheld(lists, [subseq/3]).
withheld(option, [meta_options/3]).
withheld(ordsets, [ord_range/4]).
withheld(random, [getrand/1, random_numlist/4, setrand/1]).
withheld(rbtrees, [rb_visit_range/4]).
withheld(solution_sequences, [group_by/4, reduced/1, reduced/3]).
withheld(sort, [locale_sort/2]).
withheld(strings, [indent_lines/4, interpolate_string/4, string/4]).
withheld(terms, [mapsubterms_var/3]).
withheld(ugraphs, [top_sort/3, ugraph_layers/2]).
withheld(yall, [lambda_calls/2, lambda_calls/3]).

%   only_when_loaded(Library): the names of this one are those of its exports only where it is loaded. Otherwise a goal that
%   calls one calls an unknown predicate: many are names that people give to predicates of their own.

only_when_loaded(clpb).
only_when_loaded(clpr).
only_when_loaded(simplex).
only_when_loaded(dcg/basics).
only_when_loaded(dcg/high_order).

%   unlisted(Library, Names): exports of libraries that cannot be loaded, as withheld/2 has them.

unlisted(ansi_term, [ansi_format/3, ansi_format/4, ansi_get_color/2, ansi_hyperlink/2, ansi_hyperlink/3]).
unlisted(apply_macros, [apply_macros_sentinel/0, expand_phrase/2, expand_phrase/4]).
unlisted(archive, [archive_close/1, archive_create/3, archive_data_stream/3, archive_entries/2, archive_extract/3,
    archive_foldl/4, archive_header_property/2, archive_next_header/2, archive_open/3, archive_open/4,
    archive_open_entry/2, archive_property/2, archive_set_header_property/2]).
unlisted(arithmetic, [arithmetic_expression_value/2, arithmetic_function/1]).
unlisted(atom, [identifier_parts/2, join_identifier_parts/3, restyle_identifier/3]).
unlisted(backcomp, ['C'/3, at_initialization/1, checklist/2, concat/3, concat_atom/2, concat_atom/3, convert_time/2,
    convert_time/8, current_module/2, current_mutex/3, current_thread/2, displayq/1, displayq/2, eval_license/0,
    export_list/2, feature/2, flush/0, free_variables/2, hash/1, hash_term/2, index/1, lock_predicate/2, merge/3,
    merge_set/3, message_queue_size/2, proper_list/1, read_clause/1, read_clause/2, read_history/6,
    read_pending_input/3, read_variables/2, read_variables/3, set_base_module/1, set_feature/2,
    setup_and_call_cleanup/3, setup_and_call_cleanup/4, sformat/2, sformat/3, string_to_atom/2, string_to_list/2,
    sublist/3, substring/4, sumlist/2, thread_at_exit/1, trie_insert_new/3, unlock_predicate/2, write_ln/1]).
unlisted(base32, [base32/2, base32/3]).
unlisted(base64, [base64/2, base64/3, base64_encoded/3, base64_encoded/4, base64url/2, base64url/3]).
unlisted(broadcast, [broadcast/1, broadcast_request/1, listen/2, listen/3, listening/3, unlisten/1, unlisten/2,
    unlisten/3]).
unlisted(c14n2, [xml_write_canonical/3]).
unlisted(cgi, [cgi_get_form/1]).
unlisted(charsio, [atom_to_chars/2, atom_to_chars/3, format_to_chars/3, format_to_chars/4, number_to_chars/2,
    number_to_chars/3, open_chars_stream/2, read_from_chars/2, read_term_from_chars/3, with_output_to_chars/2,
    with_output_to_chars/3, with_output_to_chars/4, write_to_chars/2, write_to_chars/3]).
unlisted(check, [check/0, list_autoload/0, list_cross_module_calls/0, list_cross_module_calls/1, list_format_errors/0,
    list_format_errors/1, list_rationals/0, list_rationals/1, list_redefined/0, list_strings/0, list_strings/1,
    list_trivial_fails/0, list_trivial_fails/1, list_undefined/0, list_undefined/1, list_void_declarations/0]).
unlisted(check_installation, [check_config_files/0, check_installation/0, check_installation/1, test_installation/0,
    test_installation/1, update_config_files/0]).
unlisted(checklast, [check_old_last/0]).
unlisted(checkselect, [check_old_select/0]).
unlisted(chr, [chr_leash/1, chr_notrace/0, chr_show_store/1, chr_trace/0, find_chr_constraint/1]).
unlisted(codesio, [format_to_codes/3, format_to_codes/4, open_codes_stream/2, read_from_codes/2,
    read_term_from_codes/3, with_output_to_codes/2, with_output_to_codes/3, with_output_to_codes/4,
    write_term_to_codes/3, write_term_to_codes/4, write_to_codes/2, write_to_codes/3]).
unlisted(coinduction, [coinductive/1]).
unlisted(crypt, [crypt/2]).
unlisted(crypto, [crypto_context_hash/2, crypto_context_new/2, crypto_curve_generator/2, crypto_curve_order/2,
    crypto_curve_scalar_mult/4, crypto_data_context/3, crypto_data_decrypt/6, crypto_data_encrypt/6,
    crypto_data_hash/3, crypto_data_hkdf/4, crypto_file_hash/3, crypto_generate_prime/3, crypto_is_prime/2,
    crypto_modular_inverse/3, crypto_n_random_bytes/2, crypto_name_curve/2, crypto_open_hash_stream/3,
    crypto_password_hash/2, crypto_password_hash/3, crypto_stream_hash/2, ecdsa_sign/4, ecdsa_verify/4, hex_bytes/2,
    rsa_private_decrypt/4, rsa_private_encrypt/4, rsa_public_decrypt/4, rsa_public_encrypt/4, rsa_sign/4,
    rsa_verify/4]).
unlisted(csv, [csv/3, csv/4, csv_options/2, csv_read_file/2, csv_read_file/3, csv_read_file_row/3, csv_read_row/3,
    csv_read_stream/3, csv_write_file/2, csv_write_file/3, csv_write_stream/3]).
unlisted(ctypes, [is_alnum/1, is_alpha/1, is_ascii/1, is_cntrl/1, is_csym/1, is_csymf/1, is_digit/1, is_digit/3,
    is_endfile/1, is_endline/1, is_graph/1, is_lower/1, is_newline/1, is_newpage/1, is_paren/2, is_period/1,
    is_print/1, is_punct/1, is_quote/1, is_space/1, is_upper/1, is_white/1, to_lower/2, to_upper/2, upper_lower/2]).
unlisted(date, [date_time_value/3, day_of_the_week/2, day_of_the_year/2, parse_time/2, parse_time/3]).
unlisted(debug, [assertion/1, debug/1, debug/3, debug_message_context/1, debugging/1, debugging/2,
    list_debug_topics/0, list_debug_topics/1, nodebug/1]).
unlisted(dialect, [exists_source/1, expects_dialect/1, source_exports/2]).
unlisted(doc_files, [doc_pack/1, doc_save/2]).
unlisted(doc_http, [doc_browser/0, doc_browser/1, doc_enable/1, doc_server/1, doc_server/2]).
unlisted(doc_latex, [doc_latex/3, latex_for_file/3, latex_for_predicates/3, latex_for_wiki_file/3]).
unlisted(dom, [append_html/2, bind/4, bind_async/4, html/3, html_meta/1, unbind/2, wait/3]).
unlisted(double_metaphone, [double_metaphone/2, double_metaphone/3]).
unlisted(edinburgh, [debug/0, display/1, display/2, fileerrors/2, nodebug/0, reconsult/1, unknown/2]).
unlisted(edit, [edit/0, edit/1]).
unlisted(editline, [el_add_history/2, el_addfn/4, el_bind/2, el_cursor/2, el_deletestr/2, el_history/2,
    el_history_events/2, el_insertstr/2, el_line/2, el_read_history/2, el_source/2, el_unwrap/1, el_wrap/0, el_wrap/4,
    el_wrapped/1, el_write_history/2]).
unlisted(exceptions, [catch/4, exception/2, exception_type/2]).
unlisted(explain, [explain/1, explain/2]).
unlisted(fastrw, [fast_read/1, fast_write/1, fast_write_to_string/3]).
unlisted(files, [can_open_file/2, chdir/1]).
unlisted(filesex, [chmod/2, copy_directory/2, copy_file/2, delete_directory_and_contents/1,
    delete_directory_contents/1, directory_file_path/3, directory_member/3, ensure_directory/1, link_file/3,
    make_directory_path/1, relative_file_name/3, set_time_file/3]).
unlisted(gensym, [gensym/2, reset_gensym/0, reset_gensym/1]).
unlisted(git, [git/2, git_branches/2, git_commit_data/3, git_default_branch/2, git_describe/2, git_hash/2,
    git_log_data/3, git_ls_remote/3, git_ls_tree/2, git_open_file/4, git_process_output/3, git_remote_branches/2,
    git_remote_url/3, git_shortlog/3, git_show/4, git_tags_on_branch/3, is_git_directory/1]).
unlisted(hash_stream, [open_hash_stream/3, stream_hash/2]).
unlisted(hashtable, [ht_del/3, ht_gen/3, ht_get/3, ht_is_hashtable/1, ht_keys/2, ht_new/1, ht_pairs/2, ht_put/3,
    ht_put/5, ht_put_new/3, ht_size/2, ht_update/4]).
unlisted(help, [apropos/1, help/0, help/1]).
unlisted(hotfix, [load_hotfixes/1]).
unlisted(increval, [incr_assert/1, incr_asserta/1, incr_assertz/1, incr_directly_depends/2, incr_invalid_subgoals/1,
    incr_invalidate_call/1, incr_invalidate_calls/1, incr_is_invalid/1, incr_propagate_calls/1, incr_retract/1,
    incr_retractall/1, incr_table_update/0, incr_trans_depends/2, is_incremental_subgoal/1]).
unlisted(intercept, [intercept/3, intercept/4, intercept_all/4, nb_intercept_all/4, send_signal/1,
    send_silent_signal/1]).
unlisted(iostream, [close_any/1, open_any/5]).
unlisted(iso_639, [iso_639/2, iso_639_2/2, iso_639_3/2]).
unlisted(isub, [isub/4]).
unlisted(json, [atom_json_dict/3, atom_json_term/3, is_json_term/1, is_json_term/2, json/4, json_read/2, json_read/3,
    json_read_dict/2, json_read_dict/3, json_write/2, json_write/3, json_write_dict/2, json_write_dict/3]).
unlisted(json_convert, [json_object/1, json_to_prolog/2, prolog_to_json/2]).
unlisted(json_grammar, [json_token/3]).
unlisted(json_rpc_common, [json_rpc_send/3]).
unlisted(json_rpc_server, [json_method/1, json_rpc_dispatch/2, json_rpc_error/2, json_rpc_error/3]).
unlisted(json_schema, [json_check/3, json_compile_schema/3, json_validate/3]).
unlisted(lazy_lists, [lazy_engine_next/4, lazy_findall/3, lazy_findall/4, lazy_get_codes/4, lazy_list/2, lazy_list/3,
    lazy_list_iterator/4, lazy_list_length/2, lazy_list_materialize/1, lazy_message_queue/4, lazy_read_lines/4,
    lazy_read_terms/4]).
unlisted(listing, [listing/0, listing/1, listing/2, portray_clause/1, portray_clause/2, portray_clause/3]).
unlisted(macros, [expand_macros/5, include_macros/3, macro_position/1]).
unlisted(main, [argv_options/3, argv_options/4, argv_usage/1, cli_debug_opt_help/2, cli_debug_opt_meta/2,
    cli_debug_opt_type/3, cli_enable_development_system/0, cli_parse_debug_options/2, main/0]).
unlisted(make, [make/0, make_reload_file/1]).
unlisted(md5, [md5_hash/3]).
unlisted(memfile, [atom_to_memory_file/2, delete_memory_file/3, free_memory_file/1, insert_memory_file/3,
    memory_file_line_position/4, memory_file_substring/5, memory_file_to_atom/2, memory_file_to_atom/3,
    memory_file_to_codes/2, memory_file_to_codes/3, memory_file_to_string/2, memory_file_to_string/3,
    new_memory_file/1, open_memory_file/3, open_memory_file/4, size_memory_file/2, size_memory_file/3,
    utf8_position_memory_file/3]).
unlisted(modules, [current_temporary_module/1, in_temporary_module/3]).
unlisted(mqi, [mqi_start/0, mqi_start/1, mqi_stop/1, mqi_version/2]).
unlisted(nb_rbtrees, [nb_rb_get_node/3, nb_rb_insert/3, nb_rb_node_value/2, nb_rb_set_node_value/2]).
unlisted(operators, [pop_operators/0, pop_operators/1, push_op/3, push_operators/1, push_operators/2]).
unlisted(optparse, [opt_arguments/3, opt_help/2, opt_parse/4, opt_parse/5]).
unlisted(oset, [oset_addel/3, oset_delel/3, oset_diff/3, oset_dint/2, oset_dunion/2, oset_int/3, oset_is/1,
    oset_power/2, oset_union/3]).
unlisted(paxos, [paxos_admin_key/2, paxos_get/1, paxos_get/2, paxos_get/3, paxos_initialize/1, paxos_on_change/2,
    paxos_on_change/3, paxos_property/1, paxos_quorum_ask/4, paxos_replicate_key/3, paxos_set/1, paxos_set/2,
    paxos_set/3]).
unlisted(pcre, [re_compile/3, re_config/1, re_flush/0, re_foldl/6, re_match/2, re_match/3, re_matchsub/3,
    re_matchsub/4, re_replace/4, re_replace/5, re_split/3, re_split/4]).
unlisted(pdt_console, [pdt_install_console/0]).
unlisted(pengines, [current_pengine_application/1, pengine_abort/1, pengine_application/1, pengine_ask/3,
    pengine_create/1, pengine_debug/2, pengine_destroy/1, pengine_destroy/2, pengine_event/2, pengine_event_loop/2,
    pengine_input/2, pengine_next/2, pengine_output/1, pengine_property/2, pengine_pull_response/2, pengine_respond/3,
    pengine_rpc/2, pengine_rpc/3, pengine_self/1, pengine_stop/2, pengine_user/1]).
unlisted(pengines_io, [message_lines_to_html/3, pengine_bind_io_to_html/1, pengine_display/1, pengine_flush_output/0,
    pengine_format/1, pengine_format/2, pengine_io_goal_expansion/2, pengine_io_predicate/1, pengine_listing/0,
    pengine_listing/1, pengine_nl/0, pengine_portray_clause/1, pengine_print/1, pengine_read/1,
    pengine_read_line_to_codes/2, pengine_read_line_to_string/2, pengine_tab/1, pengine_write/1,
    pengine_write_canonical/1, pengine_write_term/2, pengine_writeln/1, pengine_writeq/1]).
unlisted(persistency, [current_persistent_predicate/1, db_attach/2, db_attached/1, db_detach/0, db_sync/1,
    db_sync_all/1, persistent/1]).
unlisted(pldoc, [doc_collect/1, pldoc_loading/0]).
unlisted(plunit, [begin_tests/1, begin_tests/2, current_test/5, current_test_unit/2, end_tests/1, load_test_files/1,
    run_tests/0, run_tests/1, run_tests/2, running_tests/0, set_test_options/1, test_report/1]).
unlisted(porter_stem, [atom_to_stem_list/2, porter_stem/2, tokenize_atom/2, unaccent_atom/2]).
unlisted(portray_text, [portray_text/1, set_portray_text/2, set_portray_text/3]).
unlisted(pprint, [print_term/2]).
unlisted(predicate_options, [assert_predicate_options/4, check_predicate_option/3, check_predicate_options/0,
    check_predicate_options/1, current_option_arg/2, current_predicate_option/3, current_predicate_options/3,
    derive_predicate_options/0, derived_predicate_options/1, derived_predicate_options/3, predicate_options/3,
    retractall_predicate_options/0]).
unlisted(process, [is_process/1, process_create/3, process_group_kill/1, process_group_kill/2, process_id/1,
    process_id/2, process_kill/1, process_kill/2, process_release/1, process_set_method/1, process_wait/2,
    process_wait/3]).
unlisted(prolog_autoload, [autoload_all/0, autoload_all/1]).
unlisted(prolog_breakpoints, [breakpoint_property/2, delete_breakpoint/1, set_breakpoint/4, set_breakpoint/5,
    set_breakpoint_condition/2]).
unlisted(prolog_clause, [clause_info/4, clause_info/5, clause_name/2, initialization_layout/4, predicate_name/2]).
unlisted(prolog_code, [body_term_calls/2, comma_list/2, extend_goal/3, head_name_arity/3, is_control_goal/1,
    is_predicate_indicator/1, mkconj/3, mkdisj/3, most_general_goal/2, pi_head/2, predicate_label/2,
    predicate_sort_key/2, semicolon_list/2]).
unlisted(prolog_codewalk, [prolog_program_clause/2, prolog_walk_code/1]).
unlisted(prolog_colour, [prolog_colourise_query/3, prolog_colourise_stream/3, prolog_colourise_stream/4,
    prolog_colourise_term/4, syntax_colour/2, syntax_message/3]).
unlisted(prolog_config, [apple_bundle_libdir/1, prolog_config/2, prolog_dump_runtime_variables/0]).
unlisted(prolog_coverage, [cov_load_data/2, cov_property/1, cov_reset/0, cov_save_data/2, coverage/1, coverage/2]).
unlisted(prolog_debug, [debugging/0, nospy/1, nospyall/0, notrap/1, spy/1, trap/1]).
unlisted(prolog_deps, [file_auto_import/2, file_autoload_directives/3]).
unlisted(prolog_evaluable, [evaluable_property/2]).
unlisted(prolog_format, [format_spec/2, format_spec/3, format_types/2]).
unlisted(prolog_history, [prolog_history/1]).
unlisted(prolog_install, [cmake_qcompile/0, cmake_qcompile/2, cmake_save_man_index/0, qcompile_libraries/0]).
unlisted(prolog_jiti, [jiti_list/0, jiti_list/1, jiti_suggest_modes/0, jiti_suggest_modes/1]).
unlisted(prolog_locale, [setup_prolog_integer_grouping/0]).
unlisted(prolog_metainference, [infer_meta_predicate/2, inferred_meta_predicate/2]).
unlisted(prolog_pack, [pack_attach/2, pack_info/1, pack_install/1, pack_install/2, pack_list/1, pack_list_installed/0,
    pack_property/2, pack_rebuild/0, pack_rebuild/1, pack_remove/1, pack_search/1, pack_upgrade/1, pack_url_file/2]).
unlisted(prolog_qlfmake, [qlf_make/0, qlf_make/1]).
unlisted(prolog_server, [prolog_server/2]).
unlisted(prolog_source, [directory_source_files/3, file_alias_path/2, file_name_on_path/2,
    load_quasi_quotation_syntax/2, path_segments_atom/2, prolog_canonical_source/2, prolog_close_source/1,
    prolog_file_directives/3, prolog_open_source/2, prolog_read_source_term/4, read_source_term_at_location/3,
    valid_term_position/2]).
unlisted(prolog_stack, [backtrace/1, get_prolog_backtrace/2, get_prolog_backtrace/3, print_last_choicepoint/0,
    print_last_choicepoint/2, print_prolog_backtrace/2, print_prolog_backtrace/3, prolog_stack_frame_property/2]).
unlisted(prolog_stream, [open_prolog_stream/4]).
unlisted(prolog_trace, [list_tracing/0, notraceall/0, trace/1, trace/2, tracing/2]).
unlisted(prolog_versions, [cmp_versions/3, require_prolog_version/2, require_version/3]).
unlisted(prolog_wrap, [current_predicate_wrapper/4, wrap_predicate/4]).
unlisted(prolog_xref, [xref_built_in/1, xref_called/3, xref_called/4, xref_called/5, xref_clean/1, xref_comment/3,
    xref_comment/4, xref_current_source/1, xref_defined/3, xref_defined_class/3, xref_definition_line/2, xref_done/2,
    xref_exported/2, xref_hook/1, xref_meta/2, xref_meta/3, xref_mode/3, xref_module/2, xref_op/2, xref_option/2,
    xref_prolog_flag/4, xref_public_list/3, xref_public_list/4, xref_public_list/6, xref_public_list/7, xref_source/1,
    xref_source/2, xref_source_file/3, xref_source_file/4, xref_used_class/2, xref_uses_file/3]).
unlisted(protobufs, [protobuf_field_is_map/2, protobuf_map_pairs/3, protobuf_message/2, protobuf_message/3,
    protobuf_parse_from_codes/3, protobuf_serialize_to_codes/3]).
unlisted(pure_input, [lazy_list_character_count/3, lazy_list_location/3, phrase_from_file/2, phrase_from_file/3,
    phrase_from_stream/2, stream_to_lazy_list/2, syntax_error/3]).
unlisted(pwp, [pwp_files/2, pwp_stream/3, pwp_xml/3]).
unlisted(qpforeign, [load_foreign_files/0, load_foreign_files/2, load_foreign_files/3, load_foreign_resource/2,
    make_foreign_resource_wrapper/3, make_foreign_wrapper_file/1, make_foreign_wrapper_file/2, make_shared_object/3]).
unlisted(qsave, [qsave_program/1, qsave_program/2]).
unlisted(quasi_quotations, [phrase_from_quasi_quotation/2, quasi_quotation_syntax/1, quasi_quotation_syntax_error/1,
    with_quasi_quotation_input/3]).
unlisted(quintus, [abs/2, acos/2, asin/2, atan/2, atan2/3, atom_char/2, ceiling/2, compile/1, cos/2, current_stream/3,
    date/1, floor/2, genarg/3, log/2, log10/2, midstring/3, midstring/4, midstring/5, midstring/6, no_style_check/1,
    on_exception/3, otherwise/0, pow/3, prolog_flag/2, raise_exception/1, round/2, sign/2, simple/1, sin/2,
    skip_line/0, skip_line/1, sqrt/2, stream_position/3, tan/2, unix/1]).
unlisted(rdf, [load_rdf/2, load_rdf/3, process_rdf/3, xml_to_rdf/3]).
unlisted(rdf_diagram, [rdf_diagram_from_file/1]).
unlisted(rdf_parser, [element_to_plrdf/3, make_rdf_state/3, rdf_modify_state/3, rdf_name_space/1, xml_to_plrdf/3]).
unlisted(rdf_triple, [anon_prefix/1, rdf_end_file/1, rdf_reset_ids/0, rdf_start_file/2, rdf_triples/2,
    rdf_triples/3]).
unlisted(rdf_write, [rdf_write_xml/2]).
unlisted(readline, [rl_add_history/1, rl_read_history/1, rl_read_init_file/1, rl_write_history/1]).
unlisted(readln, [readln/1, readln/2, readln/5]).
unlisted(readutil, [read_file_to_codes/3, read_file_to_string/3, read_file_to_terms/3, read_line_to_codes/2,
    read_line_to_codes/3, read_line_to_string/2, read_stream_to_codes/2, read_stream_to_codes/3]).
unlisted(record, [current_record/2, current_record_predicate/2, record/1]).
unlisted(redis, [redis/1, redis/2, redis/3, redis_array_dict/3, redis_connect/1, redis_connect/3,
    redis_current_command/2, redis_current_command/3, redis_current_subscription/2, redis_disconnect/1,
    redis_disconnect/2, redis_get_hash/3, redis_get_list/3, redis_get_list/4, redis_hscan/4, redis_property/2,
    redis_read/2, redis_scan/3, redis_server/3, redis_set_hash/3, redis_set_list/3, redis_sscan/4, redis_subscribe/2,
    redis_subscribe/4, redis_unsubscribe/2, redis_write/2, redis_zscan/4]).
unlisted(redis_streams, [xadd/4, xconsumer_stop/1, xlisten/3, xlisten_group/5, xstream_set/3]).
unlisted(rewrite_term, [rew_goal_expansion/2, rew_term_expansion/2, rewrite_term/2]).
unlisted(rlimit, [rlimit/3]).
unlisted(saml, [saml_authenticate/4]).
unlisted(sandbox, [safe_call/1, safe_goal/1]).
unlisted(settings, [convert_setting_text/3, current_setting/1, list_settings/0, list_settings/1, load_settings/1,
    load_settings/2, restore_setting/1, save_settings/0, save_settings/1, set_setting/2, set_setting_default/2,
    setting/2, setting/4, setting_property/2]).
unlisted(sgml, [dtd/2, dtd_property/2, free_dtd/1, free_sgml_parser/1, get_sgml_parser/2, iri_xml_namespace/2,
    iri_xml_namespace/3, load_dtd/2, load_dtd/3, load_html/3, load_html_file/2, load_sgml/3, load_sgml_file/2,
    load_structure/3, load_xml/3, load_xml_file/2, new_dtd/2, new_sgml_parser/2, open_dtd/3, set_sgml_parser/2,
    sgml_parse/2, sgml_register_catalog_file/2, xml_basechar/1, xml_combining_char/1, xml_digit/1, xml_extender/1,
    xml_ideographic/1, xml_is_dom/1, xml_name/1, xml_name/2, xml_quote_attribute/2, xml_quote_attribute/3,
    xml_quote_cdata/2, xml_quote_cdata/3, xsd_number_string/2, xsd_time_string/3]).
unlisted(sgml_write, [html_write/2, html_write/3, sgml_write/2, sgml_write/3, xml_write/2, xml_write/3]).
unlisted(sha, [file_sha1/2, hash_atom/2, hmac_sha/4, sha_hash/3, sha_hash_ctx/4, sha_new_ctx/2]).
unlisted(shell, [cd/0, cd/1, dirs/0, ls/0, ls/1, mv/2, popd/0, pushd/0, pushd/1, pwd/0, rm/1, shell/0]).
unlisted(shlib, [current_foreign_library/2, load_foreign_library/1, load_foreign_library/2,
    reload_foreign_libraries/0, unload_foreign_library/1, unload_foreign_library/2, use_foreign_library/1,
    use_foreign_library/2]).
unlisted(snowball, [snowball/3, snowball_current_algorithm/1]).
unlisted(socket, [gethostname/1, negotiate_socks_connection/2, tcp_accept/3, tcp_bind/2, tcp_close_socket/1,
    tcp_connect/2, tcp_connect/3, tcp_connect/4, tcp_fcntl/3, tcp_getopt/2, tcp_host_to_address/2, tcp_listen/2,
    tcp_open_socket/2, tcp_open_socket/3, tcp_select/3, tcp_setopt/2, tcp_socket/1, udp_receive/4, udp_send/4,
    udp_socket/1]).
unlisted(ssl, [cert_accept_any/5, certificate_field/2, load_certificate/2, load_crl/2, load_private_key/3,
    load_public_key/2, same_certificate/2, ssl_add_certificate_key/4, ssl_context/3, ssl_negotiate/5,
    ssl_peer_certificate/2, ssl_peer_certificate_chain/2, ssl_property/2, ssl_secure_ciphers/1, ssl_session/2,
    ssl_set_options/3, ssl_upgrade_legacy_options/2, system_root_certificates/1, verify_certificate/3,
    verify_certificate_issuer/2, write_certificate/3]).
unlisted(statistics, [call_time/2, call_time/3, profile/1, profile/2, profile_data/1, profile_procedure_data/2,
    show_profile/1, statistics/0, statistics/1, thread_statistics/2, time/1]).
unlisted(stomp, [stomp_abort/2, stomp_ack/2, stomp_ack/3, stomp_begin/2, stomp_commit/2, stomp_connect/1,
    stomp_connect/2, stomp_connection/5, stomp_connection/6, stomp_connection_property/2, stomp_destroy_connection/1,
    stomp_disconnect/2, stomp_nack/2, stomp_nack/3, stomp_reconnect/1, stomp_send/4, stomp_send_json/4, stomp_setup/2,
    stomp_subscribe/4, stomp_teardown/1, stomp_transaction/2, stomp_unsubscribe/2]).
unlisted(streaminfo, [stream_info/1]).
unlisted(streampool, [add_stream_to_pool/2, close_stream_pool/0, delete_stream_from_pool/1, dispatch_stream_pool/1,
    stream_pool_main_loop/0]).
unlisted(streams, [with_output_to/3]).
unlisted(sweep_link, [write_sweep_module_location/0]).
unlisted(syslog, [closelog/0, openlog/3, syslog/2, syslog/3]).
unlisted(system, [lock_predicate/1, system_mode/1, system_module/0, unlock_predicate/1]).
unlisted(table, [close_table/1, compare_strings/4, free_table/1, get_table_attribute/3, in_table/3, new_order_table/2,
    new_table/4, open_table/1, order_table_mapping/3, prefix_string/3, prefix_string/4, read_table_fields/4,
    read_table_record/4, read_table_record_data/4, sub_string/3, table_previous_record/3, table_start_of_record/4,
    table_version/2, table_window/3]).
unlisted(table_util, [sort_table/2, verify_table_order/1]).
unlisted(tables, ['t not'/1, abolish_all_tables/0, abolish_module_tables/1, abolish_table_call/1,
    abolish_table_call/2, abolish_table_pred/1, abolish_table_subgoals/2, get_call/3, get_calls/3, get_residual/2,
    get_returns/2, get_returns/3, get_returns_and_dls/3, get_returns_and_tvs/3, get_returns_for_call/2, set_pil_off/0,
    set_pil_on/0, tfindall/3]).
unlisted(tableutil, [summarize_idg/0, summarize_idg/1, table_statistics/0, table_statistics/1, table_statistics/2,
    table_statistics/3, table_statistics_by_predicate/0, table_statistics_by_predicate/1, tdump/0, tdump/1, tdump/2,
    tidg/0, tidg/1, tstat/2, tstat/3]).
unlisted(term_to_json, [term_to_json/2, term_to_json/3]).
unlisted(test_cover, [show_coverage/1, show_coverage/2]).
unlisted(test_wizard, [make_test/3, make_tests/3]).
unlisted(thread, [call_in_thread/2, concurrent/3, concurrent_and/2, concurrent_and/3, concurrent_forall/2,
    concurrent_forall/3, concurrent_maplist/2, concurrent_maplist/3, concurrent_maplist/4, first_solution/3]).
unlisted(thread_pool, [current_thread_pool/1, thread_create_in_pool/4, thread_pool_create/3, thread_pool_destroy/1,
    thread_pool_property/2]).
unlisted(threadutil, [attach_console/0, attach_console/1, interactor/0, interactor/1, join_threads/0, tbacktrace/1,
    tbacktrace/2, tdebug/0, tdebug/1, thread_has_console/0, thread_run_interactor/0, threads/0, tnodebug/0,
    tnodebug/1, tprofile/1, tspy/1, tspy/2]).
unlisted(time, [alarm/3, alarm/4, alarm_at/3, alarm_at/4, call_with_time_limit/2, current_alarm/4, install_alarm/1,
    install_alarm/2, remove_alarm/1, uninstall_alarm/1]).
unlisted(tty, [menu/3, tty_clear/0, tty_flash/0]).
unlisted(udp_broadcast, [udp_broadcast_close/1, udp_broadcast_initialize/2, udp_peer/2, udp_peer_add/2,
    udp_peer_del/2]).
unlisted(uid, [getegid/1, geteuid/1, getgid/1, getgroups/1, getuid/1, group_data/3, group_info/2,
    set_user_and_group/1, set_user_and_group/2, setegid/1, seteuid/1, setgid/1, setuid/1, user_data/3, user_info/2]).
unlisted(unicode, [unicode_map/3, unicode_nfc/2, unicode_nfd/2, unicode_nfkc/2, unicode_nfkd/2, unicode_property/2]).
unlisted(unix, [detach_IO/0, detach_IO/1, dup/2, environ/1, exec/1, fork/1, fork_exec/1, kill/2, pipe/2, wait/2]).
unlisted(uri, [iri_normalized/2, iri_normalized/3, uri_authority_components/2, uri_authority_data/3, uri_components/2,
    uri_data/3, uri_data/4, uri_edit/3, uri_encoded/3, uri_file_name/2, uri_iri/2, uri_is_global/1, uri_normalized/2,
    uri_normalized/3, uri_normalized_iri/2, uri_normalized_iri/3, uri_query_components/2, uri_resolve/3]).
unlisted(url, [file_name_to_url/2, global_url/3, http_location/2, is_absolute_url/1, parse_url/2, parse_url/3,
    parse_url_search/2, set_url_encoding/2, url_iri/2, www_form_encode/2]).
unlisted(utf8, [utf8_codes/3]).
unlisted(uuid, [is_uuid/1, uuid/1, uuid/2, uuid_property/2]).
unlisted(vm, [clause_vm/2, vm_list/1, vmi_labels/2]).
unlisted(wasm, [(:=)/2, await/2, fetch/3, is_async/0, is_object/1, is_object/2, js_script/2, must_be_async/1,
    wasm_call_string/3, wasm_call_string_with_heartbeat/4, wasm_query/1]).
unlisted(wfs, [answer_residual/2, call_delays/2, call_residual_program/2, delays_residual_program/2]).
unlisted(writef, [swritef/2, swritef/3, writef/1, writef/2]).
unlisted(www_browser, [expand_url_path/2, www_open_url/1]).
unlisted(xmldsig, [xmld_signed_DOM/3, xmld_verify_signature/4]).
unlisted(xmlenc, [decrypt_xml/4, load_certificate_from_base64_string/2]).
unlisted(xpath, [xpath/3, xpath_chk/3]).
unlisted(xsdp_types, [xsdp_convert/3, xsdp_numeric_uri/2, xsdp_subtype_of/2, xsdp_type/1, xsdp_uri_type/2]).
unlisted(yaml, [yaml_read/2, yaml_write/2, yaml_write/3]).
unlisted(zip, [with_zipper/2, zip_close/1, zip_close/2, zip_open/4, zipper_file_info/3, zipper_members/2]).
unlisted(zlib, [gzopen/3, gzopen/4, zopen/3]).
