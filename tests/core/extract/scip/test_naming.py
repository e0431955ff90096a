"""Symbols of SCIP get the names that KB gives to the same definitions."""

from __future__ import annotations

import pytest

from kbcore.extract.scip import index
from kbcore.extract.scip.naming import descriptors, named
from tests.support.sources.scip_indexes import defined, written
from tests.support.sources.scip_indexes import named as reference

TS = "scip-typescript npm shop 1.0.0 src/`cart.ts`/"
PY = "scip-python python shop 1 `shop.cart`/"
RUST = "rust-analyzer cargo shop 0.1.0 "
GO = "scip-go gomod example.org/shop v1 `example.org/shop/cart`/"
JAVA = "semanticdb maven . . com/acme/"


def names(*occurrences, path="src/cart.ts", symbols=()):
    [file] = index.files(written({"relative_path": path, "occurrences": occurrences, "symbols": [*symbols]}))
    return {symbol: (one.name, one.kind) for symbol, one in named(file)[0].items()}


@pytest.mark.parametrize(
    ("symbol", "path", "name", "kind"),
    [
        (f"{TS}Cart#", "src/cart.ts", "Cart", "type"),
        (f"{TS}Cart#total().", "src/cart.ts", "Cart.total", "method"),
        (f"{TS}Cart#total(+2).", "src/cart.ts", "Cart.total~3", "method"),
        (f"{TS}Cart#`<constructor>`().", "src/cart.ts", "Cart.constructor", "method"),
        (f"{TS}Cart#`<get>total`().", "src/cart.ts", "Cart.total", "method"),
        (f"{TS}`<constructor>`().", "src/cart.ts", "constructor", "function"),
        (f"{TS}round().", "src/cart.ts", "round", "function"),
        (f"{PY}discount().", "shop/cart.py", "discount", "function"),
        (f"{GO}Cart#Total().", "cart/cart.go", "Cart.Total", "method"),
        (f"{JAVA}Cart#total(+1).", "src/Cart.java", "Cart.total~2", "method"),
        (f"{JAVA}Cart#Line#", "src/Cart.java", "Cart.Line", "type"),
        (f"{JAVA}Cart#Line#`<init>`().", "src/Cart.java", "Cart.Line.Line", "method"),
        (f"{JAVA}Cart#`<init>`(+1).", "src/Cart.java", "Cart.Cart~2", "method"),
        (f"{RUST}cart/impl#[Cart]total().", "src/cart.rs", "Cart.total", "method"),
        (f"{RUST}cart/impl#[`Cart<T>`][`fmt::Display`]fmt().", "src/cart.rs", "Cart.Display.fmt", "method"),
        (f"{RUST}cart/price!", "src/cart.rs", "price", "macro"),
        ("scip-x . pkg  with  blanks . a/`b``c`#", "a.x", "b`c", "type"),
    ],
)
def test_a_definition_has_the_qualified_name_without_what_says_where_the_file_is(symbol, path, name, kind):
    assert names(defined(symbol, [4, 2, 9]), path=path) == {symbol: (name, kind)}


@pytest.mark.parametrize("suffix", ["cart().(price)", "cart().[T]", "`items`.", "__init__:"])
def test_parameters_fields_and_files_are_no_symbols(suffix):
    assert names(defined(f"{TS}{suffix}", [4, 2, 9]), defined(TS, [0, 0, 0])) == {}


def test_a_variable_with_an_extent_is_one_but_where_its_kind_is_a_field():
    symbol = f"{TS}discount."
    whole = defined(symbol, [4, 2, 9], [4, 0, 60])
    assert names(whole) == {symbol: ("discount", "function")}
    assert names(whole, symbols=[{"symbol": symbol, "kind": 15}]) == {}


def test_a_namespace_in_the_file_is_part_of_the_name_and_that_of_a_go_package_is_not():
    shop = f"{TS}Shop/"
    assert names(defined(shop, [1, 17, 21]), defined(f"{shop}open().", [2, 18, 22])) == {
        shop: ("Shop", "module"),
        f"{shop}open().": ("Shop.open", "function"),
    }
    assert names(defined(GO, [0, 8, 12]), defined(f"{GO}open().", [2, 5, 9]), path="cart/cart.go") == {
        f"{GO}open().": ("open", "function")
    }
    tests = f"{RUST}cart/tests/"
    found = names(defined(tests, [9, 4, 9]), defined(f"{tests}adds().", [10, 4, 8]), path="src/cart.rs")
    assert found[f"{tests}adds()."] == ("tests.adds", "function")


def test_a_function_in_another_one_is_named_below_it_although_its_symbol_does_not_say_so():
    outer, inner = f"{PY}Cart#add().", f"{PY}Cart#inner()."
    found = names(
        defined(f"{PY}Cart#", [0, 6, 10], [0, 0, 9, 0]),
        defined(outer, [1, 8, 11], [1, 4, 5, 0]),
        defined(inner, [2, 12, 17], [2, 8, 3, 0]),
        defined(f"{PY}Cart#last().", [6, 8, 12], [6, 4, 7, 0]),
        path="shop/cart.py",
    )
    assert [one for one, _ in found.values()] == ["Cart", "Cart.add", "Cart.add.inner", "Cart.last"]


def test_two_symbols_at_one_place_are_one_and_later_ones_of_a_name_are_counted():
    again = "scip-typescript npm other 1.0.0 `cart.ts`/Math#"
    found = names(defined(f"{TS}Math#", [1, 6, 10]), defined(f"{TS}Math().", [1, 6, 10]), defined(again, [8, 6, 10]))
    assert [one for one, _ in found.values()] == ["Math", "Math~2"]


def test_a_name_that_is_far_too_long_and_a_symbol_that_is_none_are_left_out():
    assert (
        names(defined(f"{TS}{'a' * 1001}().", [1, 0, 9]), defined("nothing", [2, 0, 1]), reference(TS, [3, 0, 1])) == {}
    )
    assert descriptors("a b c d `open") is None
    assert descriptors("a b c d ") is None
