#!/usr/bin/env python3
"""The status page in a browser: page.py LATCHD [FOLDER]

Needs Chromium; without it the cases are skipped. With a folder, pictures of the page are
left there for people: light and dark, on a desk and on a phone.
"""
import html.parser
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import urllib.parse

from devtools import QUIET, Browser, chromium
from http_stand import HOSTILE, PATIENCE_S, HttpStand, shown, wait_for, words
from resp import Wire
from stand import tap

BINARY = sys.argv[1]
FOLDER = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else None
DUMP = ["--enable-logging=stderr", "--virtual-time-budget=3000"]
DARK = ["--blink-settings=preferredColorScheme=0"]
LIGHT = ["--blink-settings=preferredColorScheme=1"]


def browse(stand, *args):
    """What Chromium prints, and what it says of it."""
    program = chromium()
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
        end = subprocess.run(
            [program, *QUIET, *DUMP, f"--user-data-dir={folder}", *args,
             f"http://127.0.0.1:{stand.http_port}/"],
            capture_output=True, text=True, timeout=4 * PATIENCE_S, check=False)
    said = [line for line in end.stderr.splitlines() if "CONSOLE" in line]
    assert end.returncode == 0, end.stderr[-2000:]
    return end.stdout, said


class Page(html.parser.HTMLParser):
    """Texts of the elements with an id, of table cells, and which tags there are."""

    EMPTY = {"meta", "link", "br", "img"}

    def __init__(self, text):
        super().__init__()
        self.stack, self.tags, self.texts, self.cells, self.paths = [], [], {}, {}, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append(tag)
        if tag == "path" and "d" in attrs:
            self.paths.append(attrs["d"])
        if tag not in self.EMPTY:
            self.stack.append((tag, attrs))
        if tag in ("td", "th") and attrs.get("data-label"):
            table = [a["id"] for t, a in self.stack if t == "table"][-1]
            self.cells.setdefault((table, attrs["data-label"]), []).append("")

    def handle_endtag(self, tag):
        while self.stack and self.stack.pop()[0] != tag:
            pass

    def handle_data(self, data):
        for _, attrs in self.stack:
            if "id" in attrs:
                self.texts[attrs["id"]] = self.texts.get(attrs["id"], "") + data
        cell = [a for t, a in self.stack if t in ("td", "th") and a.get("data-label")]
        if cell:
            table = [a["id"] for t, a in self.stack if t == "table"][-1]
            self.cells[table, cell[-1]["data-label"]][-1] += data


def look(stand):
    text, said = browse(stand, "--dump-dom")
    assert not said, said
    return Page(text)


def take_pictures(stand):
    if FOLDER is None:
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    for scheme, flags in (("light", LIGHT), ("dark", DARK)):
        for device, size in (("desk", "1280,1500"), ("phone", "360,1500")):
            browse(stand, *flags, f"--window-size={size}",
                   f"--screenshot={FOLDER / f'{device}-{scheme}.png'}")


def fill(stand, clients):
    holder, waiter, other = clients
    for name in HOSTILE:
        stand.tell(holder, "LOCK", name, "OWNER", "<b>ann</b>")
    waiter.sendall(words("LOCK", list(HOSTILE)[0], "WAIT", 600000, "OWNER", "<i>bob</i>"))
    other.sendall(words("LOCK", list(HOSTILE)[0], "LOCAL"))
    wait_for(lambda: len(stand.status()["waits"]) == 2, "nobody waits")
    wait_for(lambda: len(stand.status()["history"]["held"]) >= 2, "no history")


def the_page_shows_names_as_they_are_and_nothing_else():
    with HttpStand(BINARY) as stand, stand.client() as a, stand.client() as b, \
            stand.client() as c:
        fill(stand, (a, b, c))
        page = look(stand)
        assert page.cells["holds", "Name"] == [shown(name) for name in HOSTILE]
        assert page.cells["crowded", "Name"] == [shown(list(HOSTILE)[0])]
        assert page.cells["crowded", "Waiting"] == ["2"]
        assert "<b>ann</b>" in page.cells["crowded", "Held by"][0]
        who, why = page.cells["waits", "Who"], page.cells["waits", "Why"]
        assert who[0].startswith("<i>bob</i>") and who[1].startswith("anonymouslocal"), who
        assert why == ["held by <b>ann</b>first in line", "held by <b>ann</b>1 ahead"], why
        for tag in ("b", "i", "img"):
            assert tag not in page.tags, tag
        assert page.tags.count("script") == 1
        assert page.texts["health"] == "Granting locks", page.texts["health"]
        assert len(page.paths) == 12 and all(d.startswith("M") for d in page.paths)
        take_pictures(stand)


def the_page_says_how_many_permits_somebody_has_and_wants():
    with HttpStand(BINARY) as stand, stand.client() as a, stand.client() as b, \
            stand.client() as c:
        stand.tell(a, "LOCK", "pool", "PERMITS", 3, "OF", 4)
        stand.tell(b, "LOCK", "pool", "PERMITS", 1)
        c.sendall(words("LOCK", "pool", "PERMITS", 2))
        wait_for(lambda: stand.status()["now"]["waiting"] == 1, "nobody waits")
        page = look(stand)
        assert [who.split("client")[0] for who in page.cells["holds", "Held by"]] == [
            "anonymous3 permits", "anonymous1 permit"], page.cells["holds", "Held by"]
        assert page.cells["waits", "Who"][0].startswith("anonymous2 permits"), page.cells


def the_page_says_who_waits_for_a_latch():
    with HttpStand(BINARY) as stand, stand.client() as a, stand.client() as b, \
            Browser() as browser:
        stand.tell(a, "LATCH", "SET", "gate", 1)
        b.sendall(words("LATCH", "AWAIT", "gate"))
        wait_for(lambda: stand.status()["now"]["awaits"] == 1, "nobody waits")
        page = look(stand)
        assert page.cells["waits", "Who"][0].startswith("anonymouslatch"), page.cells
        assert page.cells["waits", "Why"] == ["the latch is not open"], page.cells
        assert page.cells["crowded", "Held by"] == ["nobodylatchuntil it is open"], page.cells
        assert page.texts["waits-lead"] == "All who wait, by how long they have.", page.texts
        browser.call("Page.navigate", url=f"http://127.0.0.1:{stand.http_port}/#name=gate")
        wait_for(lambda: text_of(browser, "name-lead") == "A latch: nobody holds it.", "no latch")
        assert text_of(browser, "name-free").endswith("latchctl why gate")
        assert text_of(browser, "queue-lead").endswith("they go on together.")


def the_page_says_what_is_wrong():
    with HttpStand(BINARY, "--redis-timeout", "300ms") as stand, stand.client() as client:
        stand.tell(client, "LOCK", "job")
        stand.redis.send_signal(signal.SIGSTOP)
        wait_for(lambda: not stand.status()["ready"], "it stays well")
        page = look(stand)
        assert page.texts["health"] == "Redis is out of reach", page.texts["health"]
        stand.redis.send_signal(signal.SIGCONT)


def the_page_says_that_redis_may_throw_locks_away():
    with HttpStand(BINARY) as stand:
        with Wire(str(stand.redis_socket)) as redis:
            redis.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        wait_for(lambda: stand.status()["redis"]["evicting"] == 1, "not noticed")
        assert look(stand).texts["notices"].startswith("Redis may throw locks away"), "no notice"


def the_page_says_what_was_lost_and_why():
    with HttpStand(BINARY) as stand, stand.client() as a, stand.client() as b, \
            stand.client() as c:
        stand.tell(a, "LOCK", "<b>report</b>", "OWNER", "<i>ann</i>")
        stand.tell(b, "FORCEUNLOCK", "<b>report</b>", "ANY")
        stand.tell(a, "LOCK", "backup", "LEASE", 100)
        wait_for(lambda: stand.status()["total"]["expired"] == 1, "nothing expires")
        page = look(stand)
        assert page.texts["notices"] == ("1 hold was lost or freed by force in the last 10 "
                                         "minutes: see below which, when and why."), page.texts
        assert page.cells["losses", "Name"] == ["<b>report</b>"]
        assert page.cells["losses", "Who had it"][0].startswith("<i>ann</i>client ")
        host, port = b.getsockname()
        assert page.cells["losses", "Why"][0].endswith(f"{host}:{port}")
        assert " ago" in page.cells["losses", "When"][0]
        fill(stand, (a, b, c))
        take_pictures(stand)


def an_expired_lease_is_no_loss():
    with HttpStand(BINARY) as stand, stand.client() as client:
        stand.tell(client, "LOCK", "backup", "LEASE", 100)
        wait_for(lambda: stand.status()["total"]["expired"] == 1, "nothing expires")
        page = look(stand)
        assert "notices" not in {k for k, v in page.texts.items() if v.strip()}, page.texts
        assert not [key for key in page.cells if key[0] == "losses"], page.cells


def the_first_screen_of_a_busy_daemon_shows_who_waits():
    """Also when many holds were lost: ten rows of these stand below, the rest behind a button."""
    with HttpStand(BINARY) as stand, stand.client() as a, stand.client() as b, \
            stand.client() as c, Browser() as browser:
        fill(stand, (a, b, c))
        with stand.client() as holder, stand.client() as operator:
            for i in range(12):
                stand.tell(holder, "LOCK", f"lost:{i}")
                stand.tell(operator, "FORCEUNLOCK", f"lost:{i}", "ANY")
            wait_for(lambda: len(stand.status()["losses"]) == 12, "not lost")
            browser.call("Emulation.setDeviceMetricsOverride", width=1280, height=900,
                         deviceScaleFactor=1, mobile=False)
            browser.call("Page.navigate", url=f"http://127.0.0.1:{stand.http_port}/")
            wait_for(lambda: len(names_in(browser, "losses")) == 10, "no ten rows")
        tops = [browser.evaluate(f"document.querySelector('#{table} tbody tr')"
                                 ".getBoundingClientRect().bottom")
                for table in ("crowded", "waits", "losses")]
        assert tops[0] < 900 and tops == sorted(tops), tops
        more = "document.querySelector('#losses + button.more')"
        assert browser.evaluate(f"{more}.textContent") == "Show 2 more"
        browser.evaluate(f"{more}.click()")
        assert len(names_in(browser, "losses")) == 12


def each_chart_has_a_time_axis():
    with HttpStand(BINARY) as stand, stand.client() as a, stand.client() as b, \
            stand.client() as c, Browser() as browser:
        fill(stand, (a, b, c))
        browser.call("Page.navigate", url=f"http://127.0.0.1:{stand.http_port}/")
        axes = "[...document.querySelectorAll('.tile .axis')].map((e) => e.textContent).join('|')"
        found = wait_for(lambda: ":" in browser.evaluate(axes) and browser.evaluate(axes), "no axis")
        assert len(found.split("|")) == 6, found
        for axis in found.split("|"):
            assert re.fullmatch(r"(\d\d:\d\d:\d\d){2}now", axis), axis


def text_of(browser, id_):
    return browser.evaluate(f"document.getElementById('{id_}')?.textContent") or ""


def names_in(browser, table):
    return browser.evaluate(f"[...document.querySelectorAll('#{table} tbody th a')]"
                            ".map((e) => e.textContent).join('|')").split("|")


def press(browser, key, text=""):
    for kind in ("keyDown", "keyUp"):
        browser.call("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                     windowsVirtualKeyCode=13 if key == "Enter" else 9, text=text)


def the_view_of_a_name_is_reached_by_keys_and_is_exact():
    """Every name leads to itself, whatever its bytes are; no mouse is needed."""
    with HttpStand(BINARY) as stand, stand.client() as a, stand.client() as b, \
            stand.client() as c, Browser() as browser:
        fill(stand, (a, b, c))
        browser.call("Page.navigate", url=f"http://127.0.0.1:{stand.http_port}/")
        rows = "document.querySelectorAll('#holds tbody th a')"
        wait_for(lambda: browser.evaluate(rows + ".length") == len(HOSTILE), "no rows")
        for i, name in enumerate(HOSTILE):
            browser.evaluate(rows + f"[{i}].focus()")
            press(browser, "Enter", "\r")
            wait_for(lambda: text_of(browser, "name-title") == shown(name), name)
            wait_for(lambda: "<b>ann</b>" in text_of(browser, "holders"), name)
            wait_for(lambda: browser.evaluate("document.activeElement.id") == "name-title", "focus")
            assert browser.evaluate("document.getElementById('overview').offsetHeight") == 0
            assert text_of(browser, "queue-lead").startswith(
                "Nobody waits" if i else "All who wait"), text_of(browser, "queue-lead")
            browser.evaluate("history.back()")
            wait_for(lambda: browser.evaluate("document.getElementById('overview').offsetHeight"), "back")


def what_the_page_says_frees_a_name_frees_it():
    with HttpStand(BINARY) as stand, stand.client() as client, Browser() as browser:
        names = [n for n in HOSTILE if b"\0" not in n] + [b"plain:1", b"it's $(x) \\ `y`"]
        for name in names:
            stand.tell(client, "LOCK", name)
            browser.call("Page.navigate", url=f"http://127.0.0.1:{stand.http_port}/"
                         f"#name={urllib.parse.quote(name)}")
            said = wait_for(lambda: "--token" in text_of(browser, "name-free") and browser.evaluate(
                "document.querySelector('#name-free code').textContent"), name)
            given = subprocess.run(["bash", "-c", "latchctl() { printf '%s\\0' \"$@\"; }; " + said],
                                   capture_output=True, check=True).stdout.split(b"\0")
            assert given[:3] == [b"force", name, b"--token"], (said, given)
            assert stand.tell(client, "FORCEUNLOCK", given[1], "TOKEN", given[3]) == b":1\r\n"
            wait_for(lambda: text_of(browser, "name-losses").find("freed by force") > 0, name)
            wait_for(lambda: "latchctl why " in text_of(browser, "name-free"), name)
        stand.tell(client, "LOCK", b"a\0\"b")
        browser.call("Page.navigate", url=f"http://127.0.0.1:{stand.http_port}/#name=a%00%22b")
        wait_for(lambda: 'FORCEUNLOCK "a\\x00\\"b" TOKEN ' in text_of(browser, "name-free"), "NUL")


def a_search_finds_names_as_they_are_shown():
    with HttpStand(BINARY) as stand, stand.client() as a, stand.client() as b, \
            stand.client() as c, Browser() as browser:
        fill(stand, (a, b, c))
        for i in range(150):
            stand.tell(a, "LOCK", f"job:{i}")
        browser.call("Page.navigate", url=f"http://127.0.0.1:{stand.http_port}/")
        wait_for(lambda: text_of(browser, "health") == "Granting locks", "not shown")

        def search(text):
            browser.evaluate("document.getElementById('find').focus();"
                             "document.getElementById('find').select()")
            browser.call("Input.insertText", text=text)
            press(browser, "Enter", "\r")
        for name in HOSTILE:
            search(shown(name))
            wait_for(lambda: names_in(browser, "found") == [shown(name)], name)
        search("job:")
        wait_for(lambda: 100 <= len(names_in(browser, "found")) < 150, "they are not cut")
        wait_for(lambda: text_of(browser, "found-lead").startswith("The first"), "it goes on")
        browser.evaluate("document.getElementById('found-on').click()")
        wait_for(lambda: names_in(browser, "found") == [f"job:{i}" for i in range(150)], "not all")
        assert browser.evaluate("document.getElementById('found-on').hidden")
        stand.tell(a, "UNLOCK", "job:7")
        search("job:7")
        wait_for(lambda: names_in(browser, "found") == [f"job:7{i}" for i in range(10)], "one more")
        stand.tell(a, "LOCK", "job:7")
        search("job:7")
        wait_for(lambda: len(names_in(browser, "found")) == 11, "the same is not searched again")
        search("no such name")
        wait_for(lambda: text_of(browser, "found-lead").startswith("Nobody here"), "found")
        browser.evaluate("document.getElementById('found-exact').click()")
        wait_for(lambda: text_of(browser, "name-title") == "no such name", "not looked at")
        wait_for(lambda: "Redisson or another latchd may" in text_of(browser, "name-lead"), "told")
        browser.evaluate("document.getElementById('back').click()")
        wait_for(lambda: browser.evaluate("document.getElementById('overview').offsetHeight"), "back")


def an_empty_page_is_calm():
    with HttpStand(BINARY) as stand:
        page = look(stand)
        assert page.texts["crowded-lead"] == page.texts["waits-lead"] == "Nobody waits."
        assert page.texts["holds-lead"] == "Nothing is held."
        assert not page.cells and "notices" not in {k for k, v in page.texts.items() if v.strip()}


def a_phone_shows_it_without_scrolling_sideways():
    with HttpStand(BINARY) as stand, stand.client() as a, stand.client() as b, \
            stand.client() as c, Browser() as browser:
        fill(stand, (a, b, c))
        browser.call("Emulation.setDeviceMetricsOverride", width=360, height=740,
                     deviceScaleFactor=2, mobile=True)
        browser.call("Page.navigate", url=f"http://127.0.0.1:{stand.http_port}/")
        wait_for(lambda: browser.evaluate(
            "document.querySelectorAll('#holds tbody tr').length") == len(HOSTILE), "no rows")
        assert browser.evaluate("document.documentElement.scrollWidth") == 360
        width = browser.evaluate("Math.min(...[...document.querySelectorAll('tbody .name')]"
                                 ".map((e) => e.offsetWidth))")
        assert width > 280, f"names have {width} px"
        for hash_, table in (("name=" + urllib.parse.quote(list(HOSTILE)[0]), "holders"),
                             ("find=" + "%ff", "found")):
            browser.evaluate(f"location.hash = '{hash_}'")
            wait_for(lambda: browser.evaluate(
                f"document.querySelectorAll('#{table} tbody tr').length") == 1, "no rows")
            assert browser.evaluate("document.documentElement.scrollWidth") == 360, hash_


def pause_stops_the_asking():
    with HttpStand(BINARY) as stand, Browser() as browser:
        browser.call("Page.navigate", url=f"http://127.0.0.1:{stand.http_port}/")
        wait_for(lambda: browser.evaluate(
            "document.getElementById('health').textContent") == "Granting locks", "not shown")
        browser.evaluate("document.getElementById('pause').click()")
        stand.redis.kill()  # nothing of that is to be seen
        wait_for(lambda: not stand.status()["ready"], "it stays well")
        assert browser.evaluate("document.getElementById('pause').textContent") == "Resume"
        assert browser.evaluate(
            "document.getElementById('health').textContent") == "Granting locks"
        browser.evaluate("document.getElementById('pause').click()")
        wait_for(lambda: browser.evaluate("document.getElementById('health').textContent")
                 == "Redis is out of reach", "it does not go on")


CASES = [
    the_page_shows_names_as_they_are_and_nothing_else,
    the_page_says_how_many_permits_somebody_has_and_wants,
    the_page_says_who_waits_for_a_latch,
    the_page_says_what_is_wrong,
    the_page_says_that_redis_may_throw_locks_away,
    the_page_says_what_was_lost_and_why,
    an_expired_lease_is_no_loss,
    the_first_screen_of_a_busy_daemon_shows_who_waits,
    each_chart_has_a_time_axis,
    the_view_of_a_name_is_reached_by_keys_and_is_exact,
    what_the_page_says_frees_a_name_frees_it,
    a_search_finds_names_as_they_are_shown,
    an_empty_page_is_calm,
    a_phone_shows_it_without_scrolling_sideways,
    pause_stops_the_asking,
]

sys.exit(tap([(case.__name__, case) for case in CASES], at_once=3) != 0)
