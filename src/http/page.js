// Asks for /status.json and shows it; for the names that a search finds, and for one name,
// /names.json and /name.json. Names are data: they are only ever set as text.
//
// What is shown is in the address: #find=TEXT, #name=NAME, or nothing; so links, bookmarks
// and the way back work.
'use strict';

(() => {
  const REFRESH_MS = 2000;
  const PATIENCE_MS = 5000;
  const FEW = 10; // rows of a table

  const byId = (id) => document.getElementById(id);
  const whole = new Intl.NumberFormat('en');
  const minutes = new Intl.DateTimeFormat('en-GB', { timeStyle: 'short' });
  const clock = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' });
  const day = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short' });

  // --- words ---------------------------------------------------------------------------

  function count(n, one, many) {
    return whole.format(n) + ' ' + (n === 1 ? one : many);
  }

  function duration(ms) {
    const s = ms / 1000;
    const two = (n) => String(Math.floor(n)).padStart(2, '0');

    if (ms < 1000) return Math.round(ms) + ' ms';
    if (s < 60) return (Math.floor(s * 10) / 10).toFixed(1) + ' s';
    if (s < 3600) return Math.floor(s / 60) + ' m ' + two(s % 60) + ' s';
    if (s < 86400) return Math.floor(s / 3600) + ' h ' + two((s % 3600) / 60) + ' m';
    return Math.floor(s / 86400) + ' d ' + Math.floor((s % 86400) / 3600) + ' h';
  }

  function latency(us) {
    if (us === 0) return '0 ms';
    if (us < 1000) return Math.round(us) + ' µs';
    if (us < 10000) return (us / 1000).toFixed(1) + ' ms';
    return duration(us / 1000);
  }

  function rate(perSecond) {
    if (perSecond >= 10) return whole.format(Math.round(perSecond));
    if (perSecond === 0) return '0';
    return perSecond.toFixed(perSecond < 1 ? 2 : 1);
  }

  function moment(ms) {
    const at = Date.now() + ms;

    return (Math.abs(ms) < 12 * 3600e3 ? clock : day).format(at);
  }

  // --- elements ------------------------------------------------------------------------

  function element(tag, className, text) {
    const e = document.createElement(tag);

    if (className) e.className = className;
    if (text !== undefined) e.textContent = text;
    return e;
  }

  function setText(e, text) {
    if (e.textContent !== text) e.textContent = text;
  }

  // Cells are lists of parts, [text, class, tag, where it leads]; what has not changed is not touched, so
  // that a selection stays.
  const shown = new WeakMap();

  function fill(cell, parts) {
    const key = JSON.stringify(parts);

    if (shown.get(cell) === key) return;
    shown.set(cell, key);
    cell.replaceChildren(...parts.map(([text, className, tag, href]) => {
      const e = element(tag || 'span', className, text);

      if (href) e.href = href;
      return e;
    }));
  }

  // --- names ---------------------------------------------------------------------------

  // A name is bytes. latchd shows it with \xNN for a byte that is no text, \u{NNNN} for a
  // mark that nobody sees, and two backslashes for one: nothing is lost, so it can be taken
  // back. A backslash that begins none of these stands for itself, so people can type one.
  const SHOWN = /\\\\|\\x([0-9a-f]{2})|\\u\{([0-9a-f]{1,6})\}|[^\\]+|\\/gi;

  function bytesOf(text) {
    const bytes = [];
    const encoder = new TextEncoder();

    for (const [part, byte, code] of text.matchAll(SHOWN)) {
      if (byte) bytes.push(parseInt(byte, 16));
      else if (code && parseInt(code, 16) <= 0x10ffff) {
        bytes.push(...encoder.encode(String.fromCodePoint(parseInt(code, 16))));
      } else bytes.push(...encoder.encode(part === '\\\\' ? '\\' : part));
    }
    return bytes;
  }

  function inAddress(text) {
    return bytesOf(text).map((byte) => /[\w.~-]/.test(String.fromCharCode(byte))
      ? String.fromCharCode(byte) : '%' + byte.toString(16).padStart(2, '0')).join('');
  }

  function linkTo(name) {
    return '#name=' + inAddress(name);
  }

  function escaped(bytes, quote) {
    return quote + bytes.map((byte) => byte === 0x5c || byte === quote.charCodeAt(0)
      ? '\\' + String.fromCharCode(byte)
      : byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte)
        : '\\x' + byte.toString(16).padStart(2, '0')).join('') + quote;
  }

  // For a shell, as `latchctl why` writes it; and for redis-cli.
  function quoted(name) {
    const bytes = bytesOf(name);
    const plainly = String.fromCharCode(...bytes);

    return /^[\w+=:,./@%-]+$/.test(plainly) ? plainly : '$' + escaped(bytes, "'");
  }

  function inQuotes(name) {
    return escaped(bytesOf(name), '"');
  }

  // --- charts --------------------------------------------------------------------------

  const HEIGHT = 50;
  const SHORTEST = 30; // points of a chart
  const SECONDS_MS = 180e3; // a shorter axis has seconds, too

  function svg(tag, attributes, parent) {
    const e = document.createElementNS('http://www.w3.org/2000/svg', tag);

    for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
    parent.append(e);
    return e;
  }

  class Tile {
    constructor(series, title, show, scale) {
      const tile = element('div', 'tile');

      this.series = series;
      this.title = title;
      this.show = show; // a value of the series, as text
      this.scale = scale || ((value) => value);
      this.value = element('p', 'value', '–');
      this.note = element('p', 'note');
      tile.append(element('p', 'label', title), this.value);
      this.svg = svg('svg', { preserveAspectRatio: 'none', role: 'img' }, tile);
      this.base = svg('line', { class: 'base', x1: 0, y1: HEIGHT, y2: HEIGHT }, this.svg);
      this.middle = svg('line', { class: 'base', y1: 0, y2: HEIGHT }, this.svg);
      this.area = svg('path', { class: 'area' }, this.svg);
      this.line = svg('path', { class: 'line' }, this.svg);
      this.cursor = svg('line', { class: 'cursor', y1: 0, y2: HEIGHT, visibility: 'hidden' },
        this.svg);
      this.svg.addEventListener('pointermove', (event) => this.point(event));
      this.svg.addEventListener('pointerleave', () => this.point(null));
      this.times = ['', '', 'now'].map((text) => element('span', '', text));
      this.axis = element('p', 'axis');
      this.axis.append(...this.times);
      tile.append(this.axis, this.note);
      byId('tiles').append(tile);
    }

    update(history, now) {
      const values = history[this.series].map((v) => v === null ? null : this.scale(v, history));

      this.values = values;
      this.step = history.step_ms;
      this.age = history.step_ms - history.next_in_ms;
      // A daemon that has just started has little to show: that fills the chart, too.
      this.points = Math.min(history.points, Math.max(values.length, SHORTEST));
      setText(this.value, now);
      this.draw();
      this.drawAxis();
      this.tell();
    }

    draw() {
      const first = this.points - this.values.length;
      const top = Math.max(1, ...this.values.map((v) => v || 0)) * 1.06;
      let line = '', area = '', from = null;

      const close = (to) => {
        if (from !== null) area += `L${to} ${HEIGHT}L${from} ${HEIGHT}Z`;
        from = null;
      };
      this.values.forEach((value, i) => {
        const x = first + i;

        if (value === null) {
          close(x - 1);
          return;
        }
        const at = `${from === null ? 'M' : 'L'}${x} ${(HEIGHT * (1 - value / top)).toFixed(2)}`;

        if (from === null) from = x;
        line += at;
        area += at;
      });
      close(this.points - 1);
      this.svg.setAttribute('viewBox', `0 0 ${this.points - 1} ${HEIGHT}`);
      this.base.setAttribute('x2', this.points - 1);
      this.middle.setAttribute('x1', (this.points - 1) / 2);
      this.middle.setAttribute('x2', (this.points - 1) / 2);
      this.line.setAttribute('d', line);
      this.area.setAttribute('d', area);
    }

    // Below the chart: when its left end and its middle were.
    drawAxis() {
      const span = (this.points - 1) * this.step;
      const format = span < SECONDS_MS ? clock : minutes;
      const end = Date.now() - this.age;

      setText(this.times[0], format.format(end - span));
      setText(this.times[1], format.format(end - span / 2));
    }

    point(event) {
      const box = this.svg.getBoundingClientRect();

      this.at = event === null ? null : (event.clientX - box.left) / box.width;
      this.tell();
    }

    // What stands below the chart: the point that is pointed at, or the highest.
    tell() {
      const values = this.values || [];
      const first = this.points - values.length;
      const i = this.at == null ? -1 : Math.round(this.at * (this.points - 1)) - first;
      const pointed = i >= 0 && i < values.length;
      const known = values.filter((v) => v !== null);

      if (values.length === 0) return;
      this.cursor.setAttribute('visibility', pointed ? 'visible' : 'hidden');
      if (pointed) {
        const ago = (values.length - 1 - i) * this.step + this.age;

        this.cursor.setAttribute('x1', first + i);
        this.cursor.setAttribute('x2', first + i);
        setText(this.note, moment(-ago) + ': ' +
          (values[i] === null ? 'not known' : this.show(values[i])));
        return;
      }
      const span = duration(this.points * this.step);
      const most = this.show(Math.max(...known, 0));

      setText(this.note, `peak ${most} in ${span.replace(' m 00 s', ' min')}`);
      this.svg.setAttribute('aria-label', `${this.title}: ${this.value.textContent} now, ` +
        this.note.textContent);
    }
  }

  const plain = (v) => whole.format(v);
  const tiles = [
    [new Tile('grants', 'Grants per second', rate, (v, h) => v * 1000 / h.step_ms),
      (s, last) => rate(last('grants') * 1000 / s.history.step_ms)],
    [new Tile('waiting', 'Waiting', plain), (s) => plain(s.now.waiting + s.now.awaits)],
    [new Tile('held', 'Held', plain), (s) => plain(s.now.held)],
    [new Tile('wait_us', 'Wait, 99 % within', latency),
      (s, last) => latency(last('wait_us'))],
    [new Tile('redis_us', 'Redis, 99 % within', latency),
      (s, last) => latency(last('redis_us'))],
    [new Tile('connections', 'Connections', plain), (s) => plain(s.now.connections)],
  ];

  // --- tables --------------------------------------------------------------------------

  let latest = null; // what was answered last

  function owner(text) {
    if (text.startsWith('latchd:id:')) return [['ID ', 'dim'], [text.slice(10), 'who']];
    if (text.startsWith('latchd:rest:')) return [['nobody', 'dim'], ['rests', 'mark']];
    if (text === '' || text.startsWith('latchd:')) return [['anonymous', 'dim']];
    return [[text, 'who']];
  }

  function from(row) {
    return row.from === null ? 'no connection' : `client ${row.client}, ${row.from}`;
  }

  function kindOf(row) {
    const kind = row.kind === 'permits' ? count(row.permits, 'permit', 'permits') : row.kind;

    return row.priority > 0 ? `${kind}, priority ${row.priority}` : kind;
  }

  function holder(row, s) {
    const parts = [];

    if (row.holds === 0) {
      if (row.waiting === 0) return [['nobody', 'dim']];
      if (row.latch) return [['nobody', 'dim'], ['latch', 'mark'], ['until it is open', '', 'small']];
      if (row.lent) return [['nobody', 'dim'], ['lent to this latchd', '', 'small']];
      return [[s.redis.up ? 'somebody elsewhere' : 'not known', 'dim'],
        [s.redis.up ? 'Redisson, or another latchd' : s.health, '', 'small']];
    }
    parts.push(...owner(row.owner));
    if (row.kind !== 'plain') parts.push([kindOf(row), 'mark']);
    if (row.local) parts.push(['local', 'mark']);
    if (row.uncertain) parts.push(['uncertain', 'mark bad']);
    if (row.holds > 1) parts.push([`and ${count(row.holds - 1, 'more', 'more')}`, '', 'small']);
    if (row.data !== '') parts.push(['says ' + row.data + (row.data_is_cut ? '…' : ''), '', 'small']);
    parts.push([`${from(row)}, token ${row.token}`, '', 'small']);
    return parts;
  }

  function since(ms) {
    return [[duration(ms)], ['since ' + moment(-ms), '', 'small']];
  }

  function until(row) {
    if (row.holds === 0) return [['–', 'dim']];
    return [[duration(row.left_ms) + ' left'],
      [row.fixed ? 'until ' + moment(row.left_ms)
        : row.from === null && !row.endless ? 'not renewed any more' : 'renewed', '', 'small']];
  }

  function givesUp(row) {
    if (row.left_ms === null) return [['never']];
    return [[(row.from === null ? 'kept for ' : 'in ') + duration(row.left_ms)],
      [moment(row.left_ms), '', 'small']];
  }

  function why(row, s) {
    const ahead = row.ahead === 0 ? 'first in line'
      : row.ahead >= 100 ? 'at least 100 ahead' : `${row.ahead} ahead`;
    const parts = s.ready ? [['held by ']] : [[s.health]];

    if (row.kind === 'latch') return [[s.ready ? 'the latch is not open' : s.health]];
    if (s.ready) {
      parts.push(...(row.held_by !== '' ? owner(row.held_by)
        : [[row.lent ? 'nobody, lent to this latchd' : 'somebody elsewhere', 'dim']]));
    }
    parts.push([ahead, '', 'small']);
    return parts;
  }

  function waiter(row) {
    const parts = owner(row.owner);

    if (row.kind !== 'plain') parts.push([kindOf(row), 'mark']);
    if (row.local) parts.push(['local', 'mark']);
    parts.push([row.from === null ? 'its place is kept' : from(row), '', 'small']);
    return parts;
  }

  // The cause, as far as it is known.
  function cause(row) {
    const told = {
      gone: [['Redis has it no more'],
        ['deleted, freed through another latchd or by Redisson, or lost by Redis', '', 'small']],
      taken: [['another has the name'],
        [row.taker === '' ? 'Redis lost the hold before' : 'by ' + owner(row.taker).map(([t]) => t).join(''),
          '', 'small']],
      forced: [['freed by force'],
        [row.forced_from === '' ? 'by a client that has gone'
          : `by client ${row.forced_by}, ${row.forced_from}`, '', 'small']],
      unconfirmed: [['no renewal in time'],
        ['Redis did not confirm one before the lease was over', '', 'small']],
    };

    return told[row.cause];
  }

  function loser(row) {
    return [...owner(row.owner), [(row.client === 0 ? 'no connection' : `client ${row.client}`) +
      `, token ${row.token}`, '', 'small']];
  }

  const name = ['Name', 'name', (row) => [[row.name, 'who', 'a', linkTo(row.name)]]];
  const lostWhen = ['When', 'time', (row) => [[duration(row.ago_ms) + ' ago'],
    [moment(-row.ago_ms), '', 'small']]];
  const OVERVIEW = ['crowded', 'waits', 'losses', 'holds', 'busy'];
  const TABLES = {
    losses: [name,
      ['Who had it', 'wide', loser],
      lostWhen,
      ['Why', 'wide', cause]],
    crowded: [name,
      ['Waiting', 'count', (row) => [[whole.format(row.waiting)]]],
      ['Longest wait', 'time', (row) => [[duration(row.longest_ms)]]],
      ['Held by', 'wide', holder],
      ['Held for', 'time', (row) => row.holds === 0 ? [['–', 'dim']] : since(row.held_ms)],
      ['Lease', 'time', until]],
    waits: [name,
      ['Who', 'wide', waiter],
      ['Waiting for', 'time', (row) => since(row.waited_ms)],
      ['Gives up', 'time', givesUp],
      ['Why', 'wide', why]],
    holds: [name,
      ['Held by', 'wide', (row, s) => holder({ ...row, holds: 1 }, s)],
      ['Held for', 'time', (row) => since(row.held_ms)],
      ['Lease', 'time', (row) => until({ ...row, holds: 1 })]],
    busy: [name,
      ['Grants per second', 'count', (row) => [[rate(row.rate_milli / 1000)]]],
      ['Waiting', 'count', (row) => [[whole.format(row.waiting)]]],
      ['Held by', 'wide', holder]],
    found: [name,
      ['Waiting', 'count', (row) => [[whole.format(row.waiting)]]],
      ['Held by', 'wide', holder],
      ['Held for', 'time', (row) => row.holds === 0 ? [['–', 'dim']] : since(row.held_ms)]],
    holders: [['Held by', 'name', (row, s) => holder({ ...row, holds: 1 }, s)],
      ['Held for', 'time', (row) => since(row.held_ms)],
      ['Lease', 'time', (row) => until({ ...row, holds: 1 })]],
    queue: [['Who', 'name', waiter],
      ['Ahead', 'count', (row) => [[row.kind === 'latch' ? '–' : row.ahead === 0 ? 'first'
        : whole.format(row.ahead)]]],
      ['Waiting for', 'time', (row) => since(row.waited_ms)],
      ['Gives up', 'time', givesUp]],
    'name-losses': [['Who had it', 'name', loser], lostWhen, ['Why', 'wide', cause]],
    'name-expired': [['Who had it', 'name', loser], lostWhen],
  };

  function headOf(columns) {
    const head = element('thead');
    const row = element('tr');

    for (const [title, className] of columns) {
      const th = element('th', className, title);

      th.scope = 'col';
      row.append(th);
    }
    head.append(row);
    return head;
  }

  function rowOf(columns) {
    const row = element('tr');

    columns.forEach(([title, className], i) => {
      const cell = element(i === 0 ? 'th' : 'td', className);

      if (i === 0) cell.scope = 'row';
      cell.dataset.label = title;
      row.append(cell);
    });
    return row;
  }

  // Few rows at first; a button shows the rest.
  const opened = {};
  const drawn = {}; // how a table was shown last, to do it again

  function cutRows(id, rows) {
    const table = byId(id);
    let more = table.nextElementSibling;

    if (more === null) {
      more = element('button', 'more');
      more.type = 'button';
      more.addEventListener('click', () => {
        opened[id] = !opened[id];
        drawn[id]();
      });
      table.after(more);
    }
    more.hidden = rows.length <= FEW;
    setText(more, opened[id] ? 'Show fewer' : `Show ${rows.length - FEW} more`);
    more.setAttribute('aria-expanded', String(Boolean(opened[id])));
    return opened[id] ? rows : rows.slice(0, FEW);
  }

  function showTable(id, all, s) {
    const table = byId(id);
    const columns = TABLES[id];
    const rows = cutRows(id, all);

    drawn[id] = () => showTable(id, all, s);
    if (rows.length === 0) {
      table.replaceChildren();
      return;
    }
    if (table.tBodies.length === 0) table.append(headOf(columns), element('tbody'));
    const body = table.tBodies[0];

    while (body.rows.length > rows.length) body.lastElementChild.remove();
    while (body.rows.length < rows.length) body.append(rowOf(columns));
    rows.forEach((row, i) => columns.forEach(([, , parts], k) =>
      fill(body.rows[i].cells[k], parts(row, s))));
    if (id === 'crowded') {
      rows.forEach((row, i) => body.rows[i].style.setProperty('--share',
        Math.max(3, 100 * row.waiting / rows[0].waiting).toFixed(1) + '%'));
    }
  }

  function lead(id, rows, total, none, some, all) {
    const text = rows.length === 0 ? none
      : rows.length < total ? `${some} ${rows.length} of ${whole.format(total)}.` : all;

    setText(byId(id + '-lead'), text);
  }

  function showTables(s) {
    for (const id of OVERVIEW) showTable(id, s[id], s);
    byId('losses-part').hidden = s.losses.length === 0;
    lead('losses', s.losses, s.total.lost, '', 'The last',
      'All that were lost or freed by force since the start.');
    lead('crowded', s.crowded, 0, 'Nobody waits.', '', 'The names with the most waiters.');
    lead('waits', s.waits, s.now.waiting + s.now.awaits, 'Nobody waits.', 'The first',
      'All who wait, by how long they have.');
    lead('holds', s.holds, s.now.held, 'Nothing is held.', 'The first',
      'All that is held, by how long it has been.');
    lead('busy', s.busy, 0, 'Nothing was granted in the last seconds.', '',
      'The names that change hands most, as seen since this page was opened.');
  }

  // --- what needs a look ---------------------------------------------------------------

  function notices(s) {
    const list = [];
    const near = (what, now, max) => {
      if (now >= 0.8 * max) {
        list.push([`${what}: ${whole.format(now)} of at most ${whole.format(max)}.`]);
      }
    };

    if (s.now.uncertain > 0) {
      list.push([`${count(s.now.uncertain, 'hold is', 'holds are')} uncertain: Redis has ` +
        'not confirmed them in time. Their holders are told.', 'bad']);
    }
    if (s.lost_lately > 0) {
      list.push([`${s.lost_lately < s.losses.length || s.losses.length === s.total.lost ? '' :
        'At least '}${count(s.lost_lately, 'hold was', 'holds were')} lost or freed by force in ` +
        `the last ${Math.round(s.lately_ms / 60000)} minutes: see ` +
        `${view.kind === 'overview' ? 'below' : '“All names”'} which, when and why.`]);
    }
    if (s.redis.evicting > 0) {
      list.push(['Redis may throw locks away: set its maxmemory-policy to noeviction.', 'bad']);
    }
    near('Connections', s.now.connections, s.max.connections);
    near('Waiting', s.now.waiting, s.max.waiting);
    near('LATCH AWAIT and LEADER', s.now.awaits + s.now.followers, s.max.waiting);
    near('Held', s.now.held, s.max.held);
    return list;
  }

  function showNotices(list) {
    const ul = byId('notices');

    ul.hidden = list.length === 0;
    fill(ul, list.map(([text, className]) => [text, className, 'li']));
  }

  function showHealth(text, className) {
    const e = byId('health');

    setText(e, text);
    e.className = 'health ' + className;
  }

  function show(s) {
    latest = s;
    const last = (series) => s.history[series].at(-1) || 0;
    const redis = s.redis.version === '' ? s.redis.kind : `${s.redis.kind} ${s.redis.version}`;

    showHealth(s.ready ? 'Granting locks' : s.health[0].toUpperCase() + s.health.slice(1),
      s.ready ? 'good' : 'bad');
    setText(byId('about'), `version ${s.version}, up ${duration(s.uptime_ms)}, ` +
      `Redis ${redis}, instance ${s.instance}`);
    setText(byId('updated'), clock.format(Date.now()));
    showNotices(notices(s));
    for (const [tile, now] of tiles) tile.update(s.history, now(s, last));
    showTables(s);
    showTitle();
  }

  function showTitle() {
    const waiting = latest === null ? 0 : latest.now.waiting + latest.now.awaits;

    document.title = (latest === null || latest.ready ? '' : '! ') +
      (view.kind === 'name' && view.shown ? view.shown + ' – latchd' : 'latchd' +
        (waiting > 0 ? ` – ${whole.format(waiting)} waiting` : ''));
  }

  // --- one name ------------------------------------------------------------------------

  let view = { kind: 'overview' }; // or { kind, text }, with text as it is in the address

  function heldBy(n, s) {
    if (n.holds === 1 && n.holders.length === 1 && n.holders[0].rests) {
      return 'Held by nobody: it rests, and nobody is granted it before its time.';
    }
    if (n.holds > 0) {
      return n.holds === 1 ? 'Held here.' : `Held by ${whole.format(n.holds)} here` +
        (n.holds > n.holders.length ? `; the last ${n.holders.length} of them.` : '.');
    }
    if (!s.ready) return `Nobody here holds it. ${s.health}.`;
    if (n.lent) return 'Held by nobody: lent to this latchd.';
    if (n.latch) return 'A latch: nobody holds it.';
    return n.waiting > 0 ? 'Held by somebody elsewhere: Redisson, or another latchd.'
      : 'No client of this latchd holds it or waits for it. Redisson or another latchd may.';
  }

  function freeing(n) {
    const which = n.holds === 1 ? 'the holder' : 'the first of these';
    const why = n.latch ? 'To ask Redis how many have to count yet'
      : n.holds === 0 ? 'To ask Redis who holds it'
      : `If ${which} should not have it any more (it is told, and its token is worth less ` +
        'than the next)';
    const token = n.holds === 0 ? 0 : n.holders[0].token;

    // No program can be given a NUL byte in its arguments.
    if (bytesOf(n.name).includes(0)) {
      return [[why + ', in redis-cli:'], [n.latch ? `LATCH INFO ${inQuotes(n.name)}`
        : n.holds === 0 ? `LOCKINFO ${inQuotes(n.name)}`
        : `FORCEUNLOCK ${inQuotes(n.name)} TOKEN ${token}`, '', 'code']];
    }
    return [[why + ':'], [n.holds === 0 ? `latchctl why ${quoted(n.name)}`
      : `latchctl force ${quoted(n.name)} --token ${token}`, '', 'code']];
  }

  function showName(n) {
    const s = latest;

    view.shown = n.name;
    setText(byId('name-title'), n.name);
    setText(byId('name-lead'), heldBy(n, s));
    showTable('holders', n.holders, s);
    fill(byId('name-free'), freeing(n));
    showTable('queue', n.waits, s);
    lead('queue', n.waits, n.waiting, 'Nobody waits for it here.', 'The first',
      n.latch ? 'All who wait for it here: they go on together.'
      : 'All who wait for it here, in their order.');
    showTable('name-losses', n.losses, s);
    lead('name-losses', n.losses, 0, 'None of this name among the last that were lost.', '',
      'Those of this name among the last 100 that were lost or freed by force.');
    byId('name-expired-part').hidden = n.expired.length === 0;
    showTable('name-expired', n.expired, s);
    showTitle();
  }

  // --- a search ------------------------------------------------------------------------

  const BUSY_MS = 250; // after so long it is asked again when too many ask,
  const BUSY_MOST = 40; // at most so often
  const FOUND_MOST = 100; // until somebody wants more
  const inOrder = new Intl.Collator('en', { numeric: true });

  async function get(path) {
    for (let tries = 1; ; tries++) {
      const reply = await fetch(path,
        { signal: AbortSignal.timeout(PATIENCE_MS), cache: 'no-store' });

      if (reply.ok) return reply.json();
      if (reply.status !== 503 || tries === BUSY_MOST) throw new Error(await reply.text());
      await new Promise((resume) => setTimeout(resume, BUSY_MS));
    }
  }

  function showFound(v, going) {
    const rows = [...v.found.values()].sort((a, b) => inOrder.compare(a.name, b.name));
    const names = count(rows.length, 'name', 'names');

    opened.found = true;
    showTable('found', rows, latest);
    byId('found').nextElementSibling.hidden = true; // found-on does that
    setText(byId('found-lead'), going ? `Searching: ${names} so far.`
      : v.failed ? `The search failed after ${names}: ${v.failed}`
        : v.cursor !== '0' ? `The first ${names}, as of ${clock.format(v.at)}.`
          : rows.length === 0 ? 'Nobody here holds or waits for such a name. ' +
            'Upper and lower case differ.'
            : `${names} held or waited for here, as of ${clock.format(v.at)}.`);
    byId('found-on').hidden = going || v.cursor === '0';
  }

  // A step at a time, so that a daemon with very many names is not held up.
  async function search(v) {
    const most = v.found.size + FOUND_MOST;

    if (v.going) return;
    v.going = true;
    v.failed = '';
    try {
      do {
        const step = await get(`names.json?find=${v.text}&cursor=${v.cursor}`);

        if (view !== v) return;
        for (const row of step.names) v.found.set(row.name, row);
        v.cursor = step.cursor;
        v.shown = step.find;
        if (byId('found-exact').hidden) {
          byId('find').value = v.shown;
          byId('found-exact').hidden = false;
          byId('found-exact').href = linkTo(v.shown);
          setText(byId('found-exact'), `Look at exactly “${v.shown}”`);
        }
        v.at = Date.now();
        showFound(v, true);
      } while (v.cursor !== '0' && v.found.size < most);
    } catch (error) {
      v.failed = error.message;
    }
    v.going = false;
    if (view === v) showFound(v, false);
  }

  // --- which of them -------------------------------------------------------------------

  function viewOf(hash) {
    const [, kind, text] = /^#(find|name)=(.+)$/.exec(hash) || [];

    return kind === undefined ? { kind: 'overview' }
      : { kind, text: text.replace(/[&#+]/g, encodeURIComponent), cursor: '0', found: new Map() };
  }

  function go() {
    view = viewOf(location.hash);
    byId('overview').hidden = view.kind !== 'overview';
    byId('found-view').hidden = view.kind !== 'find';
    byId('name-view').hidden = view.kind !== 'name';
    byId('back').hidden = view.kind === 'overview';
    byId('found-exact').hidden = byId('name-expired-part').hidden = true;
    if (view.kind !== 'find') byId('find').value = '';
    for (const id of ['holders', 'queue', 'name-losses', 'name-expired', 'found']) byId(id).replaceChildren();
    for (const id of ['name-title', 'name-lead', 'queue-lead', 'name-losses-lead']) {
      setText(byId(id), '');
    }
    setText(byId('found-lead'), 'Searching.');
    byId('found-on').hidden = true;
    fill(byId('name-free'), []);
    if (latest !== null) showNotices(notices(latest));
    showTitle();
  }

  async function showView() {
    const v = view;

    if (v.kind === 'name') {
      try {
        const n = await get('name.json?name=' + v.text);

        if (view === v) showName(n);
      } catch (error) {
        if (view === v) setText(byId('name-lead'), error.message);
      }
    } else if (v.kind === 'find' && !v.begun) {
      v.begun = true;
      search(v);
    }
  }

  // --- asking --------------------------------------------------------------------------

  let timer = 0;
  let paused = false;
  let answered = null; // when the daemon last did

  async function ask() {
    const patience = new AbortController();
    const end = setTimeout(() => patience.abort(), PATIENCE_MS);

    try {
      const reply = await fetch('status.json', { signal: patience.signal, cache: 'no-store' });

      if (!reply.ok) throw new Error(String(reply.status));
      show(await reply.json());
      answered = Date.now();
      await showView();
    } catch (error) {
      showHealth(answered === null ? 'No answer'
        : 'No answer since ' + clock.format(answered), 'bad');
    } finally {
      clearTimeout(end);
    }
  }

  async function turn() {
    clearTimeout(timer);
    await ask();
    schedule();
  }

  function schedule() {
    clearTimeout(timer);
    if (!paused && !document.hidden) timer = setTimeout(turn, REFRESH_MS);
  }

  byId('pause').addEventListener('click', (event) => {
    paused = !paused;
    event.target.textContent = paused ? 'Resume' : 'Pause';
    if (paused) clearTimeout(timer); else turn();
  });
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) clearTimeout(timer); else if (!paused) turn();
  });
  async function changeView() {
    go();
    const v = view;

    await (latest === null ? turn() : showView());
    if (view !== v || v.kind === 'overview') return;
    byId(v.kind === 'name' ? 'name-title' : 'found-title').focus();
  }

  byId('search').addEventListener('submit', (event) => {
    const text = byId('find').value;
    const hash = text === '' ? '' : '#find=' + inAddress(text);

    event.preventDefault();
    if (hash === location.hash) changeView(); // the same search once more
    else location.hash = hash;
  });
  byId('found-on').addEventListener('click', () => search(view));
  addEventListener('hashchange', changeView);
  go();
  turn();
})();
