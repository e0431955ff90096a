/*  The names that a goal of the workspace may call.

    Data only: built-in predicates by name and arity, the libraries that may be loaded, and the hooks that nobody may
    define. A predicate that is not here is refused, whatever it does.
*/
:- module(kb_allowed, [builtin/1, judged/2, state_change/1, library_name/1, listed/1, preloaded/1, meta_export/2,
                     pure_export/2, hook_name/2, text_option/1, not_everywhere/1]).

%   builtin(Names): lists of Name/Arity that library(sandbox) has to call safe as well.

builtin([true/0, fail/0, false/0, repeat/0, throw/1]).
builtin([(=)/2, (\=)/2, (==)/2, (\==)/2, (@<)/2, (@=<)/2, (@>)/2, (@>=)/2, compare/3, (=@=)/2, (\=@=)/2, (?=)/2,
         unify_with_occurs_check/2, unifiable/3, subsumes_term/2, term_subsumer/3]).
builtin([var/1, nonvar/1, atom/1, number/1, integer/1, float/1, rational/1, rational/3, atomic/1, compound/1, callable/1,
         string/1, is_list/1, ground/1, nonground/2, cyclic_term/1, acyclic_term/1, blob/2, attvar/1, is_dict/1,
         is_dict/2]).
builtin([(is)/2, (<)/2, (>)/2, (=<)/2, (>=)/2, (=:=)/2, (=\=)/2, succ/2, plus/3, between/3,
         nth_integer_root_and_remainder/4]).
builtin([functor/3, functor/4, arg/3, (=..)/2, compound_name_arity/3, compound_name_arguments/3, copy_term/2,
         copy_term_nat/2, duplicate_term/2, term_variables/2, term_variables/3, term_attvars/2, numbervars/3,
         term_hash/2, term_hash/4, variant_hash/2, variant_sha1/2, size_abstract_term/3]).
builtin([length/2, memberchk/2, msort/2, sort/2, sort/4, keysort/2]).
builtin([atom_codes/2, atom_chars/2, char_code/2, atom_length/2, atom_concat/3, sub_atom/5, atom_number/2,
         number_codes/2, number_chars/2, name/2, upcase_atom/2, downcase_atom/2, atomic_list_concat/2,
         atomic_list_concat/3, term_to_atom/2, atom_to_term/3, atom_string/2, number_string/2, term_string/2,
         string_chars/2, string_codes/2, string_code/3, string_concat/3, string_length/2, string_lower/2,
         string_upper/2, sub_string/5, sub_atom_icasechk/3, split_string/4, normalize_space/2, char_type/2, code_type/2,
         text_to_string/2]).
builtin([dict_create/3, dict_pairs/3, get_dict/3, get_dict/5, put_dict/3, put_dict/4, del_dict/4, select_dict/3,
         (:<)/2, (>:<)/2]).
builtin([current_op/3, get_time/1, stamp_date_time/3, date_time_stamp/2, statistics/2]).
builtin([file_base_name/2, file_directory_name/2, file_name_extension/3]).

%   judged(Name/Arity, Reason): allowed although library(sandbox) does not list it as a plain safe predicate.

judged(findall/3, rewritten_argument).
judged(findall/4, rewritten_argument).
judged(findnsols/4, rewritten_argument).
judged(bagof/3, rewritten_argument).
judged(setof/3, rewritten_argument).
judged(forall/2, rewritten_argument).
judged(aggregate_all/3, rewritten_argument).
judged(aggregate_all/4, rewritten_argument).
judged(once/1, rewritten_argument).
judged(ignore/1, rewritten_argument).
judged(not/1, rewritten_argument).
judged(catch/3, rewritten_argument).
judged(call_cleanup/2, rewritten_argument).
judged(setup_call_cleanup/3, rewritten_argument).
judged(call_with_depth_limit/3, rewritten_argument).
judged(phrase/2, rewritten_argument).
judged(phrase/3, rewritten_argument).
judged(freeze/2, rewritten_argument).
judged((\=@=)/2, pure).
judged(term_subsumer/3, pure).
judged(text_to_string/2, pure).
judged(current_op/3, reads_operators).
judged(tab/1, captured_output).

state_change([assert/1, asserta/1, assertz/1, assert/2, asserta/2, assertz/2, retract/1, retractall/1, abolish/1,
              abolish/2, erase/1, (dynamic)/1, (dynamic)/2, (discontiguous)/1, flag/3, nb_setval/2, b_setval/2, recorda/2,
              recorda/3, recordz/2, recordz/3, op/3, set_prolog_flag/2, create_prolog_flag/3, (table)/1, consult/1,
              load_files/2, use_module/1, use_module/2, ensure_loaded/1, set_flag/2, setarg/3, nb_setarg/3]).

%   Libraries. What exports.pl offers of one is allowed where library(sandbox) calls it safe; a predicate that calls goals
%   has to be named in meta_export/2.

%   library_name(Name): those that may be loaded, with those that every engine has loaded. The caller names both
%   (`engine/libraries.py`).

:- dynamic preloaded/1,
           listed/1.

library_name(Name) :- preloaded(Name).
library_name(Name) :- listed(Name).

meta_export(lists, [max_member/3, min_member/3]).
meta_export(apply, [include/3, exclude/3, partition/4, partition/5, partition/6, maplist/2, maplist/3, maplist/4, maplist/5,
                    maplist/6, maplist/7, foldl/4, foldl/5, foldl/6, foldl/7, foldr/4, convlist/3, scanl/4, scanl/5,
                    scanl/6, scanl/7, forall/2]).
meta_export(aggregate, [aggregate/3, aggregate/4, aggregate_all/3, aggregate_all/4, foreach/2]).
meta_export(sort, [predsort/3]).
meta_export(pairs, [map_list_to_pairs/3]).
meta_export(when, [when/2]).
meta_export(terms, [foldsubterms/4, foldsubterms/5, mapsubterms/3, mapargs/3]).
meta_export(assoc, [map_assoc/2, map_assoc/3]).
meta_export(rbtrees, [rb_apply/4, rb_map/2, rb_map/3, rb_fold/4, rb_partial_map/4]).
meta_export(solution_sequences, [distinct/1, distinct/2, limit/2, offset/2, order_by/2, call_nth/2]).
meta_export(dcg/high_order, [sequence/4, sequence/5, sequence/7, optional/4, foreach/4, foreach/5]).

%   pure_export(Library, Names): exports that work on their arguments alone, where library(sandbox) cannot see that
%   without the arguments (most check them by must_be/2).

pure_export(lists, [nth0/3, nth0/4, nth1/3, nth1/4, numlist/3, append/2, permutation/2, list_to_set/2]).
pure_export(ordsets, [ord_intersection/2]).
pure_export(error, [must_be/2]).
pure_export(ugraphs, [top_sort/2]).
pure_export(nb_set, [add_nb_set/2, add_nb_set/3, gen_nb_set/2, nb_set_to_list/2]).
pure_export(clpb, [sat/1, taut/2, labeling/1, sat_count/2, weighted_maximum/3]).
pure_export(simplex, [assignment/2, transportation/4, constraint_add/4, maximize/3, minimize/3, shadow_price/3]).
pure_export(strings, [string_lines/2]).
pure_export(varnumbers, [varnumbers/2, varnumbers/3, varnumbers_names/3]).
pure_export(random, [random/3, random_between/3, random_member/2, random_select/3, random_permutation/2, randseq/3,
                     randset/3, maybe/1, maybe/2]).
pure_export(dicts, [dict_size/2]).
pure_export(dcg/basics, [number/3, float/3, atom/3]).

%   text_option(Name): options of write_term/2 and term_string/3 that call nothing.

text_option(Name) :-
    memberchk(Name, [quoted, ignore_ops, numbervars, max_depth, spacing, priority, variable_names, cycles, dotlists,
                     brace_terms, no_lists, partial, fullstop, nl, character_escapes, quote_non_ascii, double_quotes,
                     back_quotes, syntax_errors, var_prefix, variables, singletons, subterm_positions, term_position,
                     comments]).

%   Hooks: predicates that the system calls by itself.

hook_name(term_expansion, 2).
hook_name(term_expansion, 4).
hook_name(goal_expansion, 2).
hook_name(goal_expansion, 4).
hook_name(dcg_translate_rule, 2).
hook_name(dcg_translate_rule, 4).
hook_name(portray, 1).
hook_name(portray, 2).
hook_name(attr_unify_hook, 2).
hook_name(attribute_goals, 3).
hook_name(attr_portray_hook, 2).
hook_name(project_attributes, 2).
hook_name(message_hook, 3).
hook_name(exception, 3).
hook_name(prolog_exception_hook, 4).
hook_name(prolog_exception_hook, 5).
hook_name(prolog_load_file, 2).
hook_name(expand_query, 4).
hook_name(expand_answer, 2).
hook_name(file_search_path, 2).
hook_name(library_directory, 1).
hook_name(resource, 2).
hook_name(resource, 3).

%   not_everywhere(Names): predicates of the system that only some builds of SWI-Prolog have and that no goal may call,
%   refused by name by all. Those of libraries are in exports.pl.

not_everywhere(
    [call_cleanup/3, call_shared_object_function/2, close_shared_object/1, dict_same_keys/2, is_thread/1, js_run_script/1,
     malloc_property/1, message_queue_create/1, message_queue_create/2, message_queue_destroy/1, message_queue_property/2,
     message_queue_set/2, mode/1, mutex_create/1, mutex_create/2, mutex_destroy/1, mutex_lock/1, mutex_property/2,
     mutex_statistics/0, mutex_trylock/1, mutex_unlock/1, mutex_unlock_all/0, open_shared_object/2, open_shared_object/3,
     open_xterm/5, profiler/2, prolog_alert_signal/2, prolog_skip_frame/1, reset_profiler/0, set_malloc/1, sig_pending/1,
     sig_remove/2, text_concat/3, thread_affinity/3, thread_alias/1, thread_create/3, thread_detach/1, thread_exit/1,
     thread_get_message/1, thread_get_message/2, thread_get_message/3, thread_join/2, thread_peek_message/1,
     thread_peek_message/2, thread_send_message/2, thread_send_message/3, thread_setconcurrency/2, thread_signal/2,
     thread_statistics/3, thread_update/2, thread_wait/2, tty_get_capability/3, tty_goto/2, tty_put/2,
     use_foreign_library/2, win_rename_file/2, write_length/3, write_size/4]).
