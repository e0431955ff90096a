"""Matching of outcomes with tests, by the names that runners give."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.results.matching import KnownTest, KnownTests, TestMatch
from kbcore.results.reported import ReportedOutcome


def of_code(path: str, name: str) -> KnownTest:
    return KnownTest(f"{path}#{name}", name, path)


PYTHON = of_code("services/pay/tests/test_cart.py", "TestCart.test_total")
JAVA = of_code("src/test/java/com/acme/CartTest.java", "CartTest.hasTotal")
NESTED = of_code("src/test/java/com/acme/CartTest.java", "CartTest.WithItems.isFull")
GO = of_code("backend/cart/cart_test.go", "TestTotal")
RUST = of_code("src/cart.rs", "tests.adds_up")
RUST_LIB = of_code("src/lib.rs", "tests.waits")
SCRIPT = of_code("t/cart.test.ts", 'a cart.with items.has a "total"')
SLASH = of_code("t/cart.test.ts", "handles a/b")
ROOT = of_code("test_top.py", "test_top")
MANUAL = KnownTest("TEST-1", "The cart is emptied by hand")
AUTOMATED = KnownTest("TEST-2", "Totals", automated_by=("services/pay/tests/test_cart.py::TestCart",))
BY_CLASS = KnownTest("TEST-3", "All of the cart", automated_by=("com.acme.CartTest",))
NAMES = KnownTests([PYTHON, JAVA, NESTED, GO, RUST, RUST_LIB, SCRIPT, SLASH, ROOT, MANUAL])


def match(
    name: str, scope: str = "", file: str = "", names: KnownTests = NAMES, ids: tuple[str, ...] = ()
) -> TestMatch:
    return names.match(ReportedOutcome(name, "passed", scope, file, ids=ids))


@pytest.mark.parametrize(
    ("name", "scope", "file", "expected"),
    [
        ("test_total", "services.pay.tests.test_cart.TestCart", "", PYTHON),
        ("test_total[1-2]", "tests.test_cart.TestCart", "", PYTHON),
        ("test_total", "test_cart.TestCart", "", PYTHON),
        ("test_total", "tests.test_cart.TestCart", "tests/test_cart.py", PYTHON),
        ("test_total", "TestCart", "/ci/repo/services/pay/tests/test_cart.py", PYTHON),
        ("test_top", "test_top", "", ROOT),
        ("hasTotal", "com.acme.CartTest", "", JAVA),
        ("hasTotal(int)[1]", "com.acme.CartTest", "", JAVA),
        ("hasTotal{int}[2]", "com.acme.CartTest", "", JAVA),
        ("isFull", "com.acme.CartTest$WithItems", "", NESTED),
        ("TestTotal", "github.com/acme/shop/cart", "", GO),
        ("TestTotal/empty", "github.com/acme/shop/cart", "", GO),
        ("TestTotal/a/b", "cart", "", GO),
        ("cart::tests::adds_up", "shop", "", RUST),
        ("tests::waits", "shop", "", RUST_LIB),
        ('a cart with items has a "total"', 'a cart with items has a "total"', "", SCRIPT),
        ('has a "total"', "a cart with items", "", SCRIPT),
        ('a cart > with items > has a "total"', "t/cart.test.ts", "", SCRIPT),
        ('a cart with items has a "total"', 'has a "total"', "", SCRIPT),
        ("handles a/b", "handles a/b", "", SLASH),
        ("The cart is emptied by hand", "", "", MANUAL),
        ("TEST-1 works", "any", "", MANUAL),
        ("[TEST-1] works", "any", "", MANUAL),
    ],
)
def test_a_name_as_a_runner_writes_it_means_its_test(name, scope, file, expected):
    assert match(name, scope, file) == TestMatch((expected.id,))


@pytest.mark.parametrize(
    ("name", "scope", "file"),
    [
        ("test_total", "other.test_cart.TestCart", ""),
        ("test_total", "TestCart", "other/test_cart.py"),
        ("test_other", "tests.test_cart.TestCart", ""),
        ("hasTotal", "com.other.CartTest", ""),
        ("TestTotal", "github.com/acme/shop/other", ""),
        ("handles a", "", ""),
        ("handles a/c", "", ""),
        ("total", "", ""),
        ("", "", ""),
        ("…", "", ""),
    ],
)
def test_a_name_that_contradicts_the_place_of_a_test_is_not_of_it(name, scope, file):
    assert match(name, scope, file) == TestMatch()


def test_of_tests_with_one_name_the_nearest_place_is_meant_and_none_where_two_are_as_near():
    near, far = of_code("a/tests/test_x.py", "test_x"), of_code("b/tests/test_x.py", "test_x")
    names = KnownTests([near, far])
    assert match("test_x", "a.tests.test_x", names=names) == TestMatch((near.id,))
    assert match("test_x", "tests.test_x", names=names) == TestMatch(candidates=(near.id, far.id))


def test_ids_in_a_report_and_what_a_test_says_of_itself_count_beside_the_test_of_source_code():
    names = KnownTests([PYTHON, JAVA, AUTOMATED, BY_CLASS, MANUAL])
    found = match("test_total", "services.pay.tests.test_cart.TestCart", names=names, ids=("TEST-1", "TEST-9"))
    assert found.ids == ("TEST-1", "TEST-2", PYTHON.id)
    assert match("hasTotal", "com.acme.CartTest", names=names).ids == ("TEST-3", JAVA.id)
    assert match("test_x", "tests.test_cart", "services/pay/tests/test_cart.py", names=names).ids == ()
    assert names.unknown_ids(ReportedOutcome("a", "passed", ids=("TEST-1", "TEST-9"))) == ["TEST-9"]


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=30))
def test_any_name_is_compared(name, scope, file):
    found = match(name, scope, file)
    assert not (found.ids and found.candidates)
