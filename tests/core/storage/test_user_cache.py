"""Texts in the cache folder of the user."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.storage.user_cache import UserCache, key_of


@pytest.fixture
def env(tmp_path):
    return {"XDG_CACHE_HOME": str(tmp_path / "cache")}


def test_what_is_kept_is_read_again(env):
    cache = UserCache(env, "texts", 10)
    assert cache.read("a") is None
    cache.keep("a", "text\n")
    assert UserCache(env, "texts", 10).read("a") == "text\n"
    assert UserCache(env, "others", 10).read("a") is None


def test_the_oldest_texts_make_room(env, tmp_path):
    cache = UserCache(env, "texts", 2)
    for at, key in enumerate("abc"):
        cache.keep(key, key)
        os.utime(tmp_path / "cache/kb/texts" / key, ns=(at, at))
    cache.keep("d", "d")
    assert [cache.read(key) for key in "abcd"] == [None, None, "c", "d"]


def test_a_folder_that_others_may_write_to_is_not_used(env, tmp_path):
    cache = UserCache(env, "texts", 2)
    cache.keep("a", "a")
    (tmp_path / "cache/kb/texts").chmod(0o777)
    assert cache.read("a") is None
    cache.keep("b", "b")
    assert not (tmp_path / "cache/kb/texts/b").exists()


def test_without_a_home_nothing_is_kept():
    cache = UserCache({}, "texts", 2)
    cache.keep("a", "a")
    assert cache.read("a") is None


@given(st.lists(st.text(), max_size=4), st.lists(st.text(), max_size=4))
def test_the_keys_of_different_texts_differ(first, second):
    assert (key_of(first) == key_of(second)) == (first == second)
