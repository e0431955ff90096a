"""Functions that are tests, as the runner of each language finds them."""

from __future__ import annotations

import pytest

from kbcore.extract.code.extractor import EXTRACTOR
from kbcore.extract.facts import SourceFile

JAVASCRIPT = """
describe("a cart", () => {
  beforeEach(() => {});
  it("is empty at first", () => {
    const cart = () => 1;
  });
  describe("with items", () => {
    test.only('has a "total"', async () => {});
  });
});
test(`stands alone`, function () {});
it("waits");
function helper() {}
"""
GO = """package shop

import "testing"

func TestTotal(t *testing.T) {}
func TestingHelper() {}
func FuzzParse(f *testing.F) {}
func ExampleCart() {}
func helper() {}
func (c *Cart) TestLike() {}
"""
RUST = """
#[test]
fn adds_up() {}

#[tokio::test]
async fn waits() {}

#[cfg(test)]
mod tests {
    #[test]
    #[should_panic]
    fn fails() {}

    fn helper() {}
}
"""
JAVA = """
class CartTest {
  @Test void isEmpty() {}
  @org.junit.jupiter.api.Test
  void hasTotal() {}
  @ParameterizedTest @ValueSource(ints = {1}) void counts(int x) {}
  @BeforeEach void setUp() {}
  void helper() {}
}
"""
PYTHON = """
def test_total(): pass
async def test_waits(): pass
def helper():
    def test_inner(): pass
class TestCart:
    def test_empty(self): pass
    def helper(self): pass
"""


def types(path: str, text: str, **settings: list[str]) -> dict[str, str]:
    found = EXTRACTOR.extract(SourceFile(path, text.encode()), {"paths": ["src/**"], **settings}).entities
    return {one.id.partition("#")[2]: one.type for one in found}


@pytest.mark.parametrize(
    ("path", "text", "tests"),
    [
        ("t/a.test.js", JAVASCRIPT, ["a cart.is empty at first", 'a cart.with items.has a "total"', "stands alone"]),
        ("t/a.spec.ts", JAVASCRIPT, ["a cart.is empty at first", 'a cart.with items.has a "total"', "stands alone"]),
        ("t/a_test.go", GO, ["TestTotal", "FuzzParse", "ExampleCart"]),
        ("t/a.rs", RUST, ["adds_up", "waits", "tests.fails"]),
        ("t/CartTest.java", JAVA, ["CartTest.isEmpty", "CartTest.hasTotal", "CartTest.counts"]),
        ("t/test_a.py", PYTHON, ["test_total", "test_waits", "TestCart.test_empty"]),
    ],
)
def test_tests_are_found_where_they_are_asked_for_and_only_there(path, text, tests):
    found = types(path, text, tests=["t/**"])
    assert [name for name, kind in found.items() if kind == "test"] == tests
    assert "helper" in "".join(found)
    assert "test" not in types(path, text).values()
