#!/usr/bin/env python3
"""Draws what `table` has written: plot.py [bench.tsv [FOLDER]].

FOLDER (here) gets rate.svg, p99.svg, cost.svg and commands.svg: bars for each workload and
way, and for cost.svg what of a bar is whose.
"""
import html
import pathlib
import sys

BAR, GAP, LEFT, WIDTH, RIGHT, TOP = 14, 10, 220, 520, 90, 40
COLOURS = {"latchd": "#2a6fb0", "SET NX": "#c07a2c", "Redisson's": "#8a4fa3",
           "Redisson": "#b0413e", "etcd": "#3f8f5a", "ZooKeeper": "#6b6b6b"}
PARTS = {"client": "#b8b8b8", "daemon": "#2a6fb0", "redis": "#b0413e"}
CHARTS = (("rate", "pairs a second", ("pairs/s",)),
          ("p99", "us to a grant, 99th percentile", ("p99 us",)),
          ("cost", "us of processor time for a pair", tuple(PARTS)),
          ("commands", "commands of Redis for a pair", ("cmds/p",)))


def rows_of(text):
    lines = text.split("\n\n")[0].splitlines()  # behind it stand single values
    heads = [word.strip() for word in lines[0].split("\t")]
    for line in lines[1:]:
        yield dict(zip(heads, (word.strip() for word in line.split("\t"))))


def text(x, y, words, anchor="start", extra=""):
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}"{extra}>{html.escape(words)}</text>'


def legend(title, colours):
    out, x = [text(LEFT, 16, title, extra=' font-weight="bold"')], LEFT
    for name, colour in colours.items():
        out.append(f'<rect x="{x}" y="22" width="10" height="10" fill="{colour}"/>')
        out.append(text(x + 14, 31, name))
        x += 24 + 7 * len(name)
    return out


def bars(rows, columns, most):
    """A line for each row, the workload written before the first of it."""
    y, workload = TOP, None
    for row in rows:
        if row["workload"] != workload:
            workload, y = row["workload"], y + GAP
            yield text(LEFT - 8, y + BAR - 3, workload, "end")
        x = LEFT
        for column in columns:
            colour = PARTS.get(column) or COLOURS.get(row["way"], "#444")
            width = float(row[column]) / most * WIDTH
            yield (f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAR - 2}" '
                   f'fill="{colour}"/>')
            x += width
        total = sum(float(row[column]) for column in columns)
        said = f"{total:,.0f}" if total >= 100 else f"{total:.1f}"
        if len(columns) > 1 and row["way"] != "latchd":
            said += " " + row["way"]
        yield text(round(x) + 4, y + BAR - 4, said)
        y += BAR


def chart(rows, title, columns):
    most = max(sum(float(row[c]) for c in columns) for row in rows) or 1
    workloads = len({row["workload"] for row in rows})
    height = TOP + len(rows) * BAR + workloads * GAP + GAP
    used = {row["way"] for row in rows}
    colours = PARTS if len(columns) > 1 else {w: c for w, c in COLOURS.items() if w in used}
    body = "\n".join(legend(title, colours) + list(bars(rows, columns, most)))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + RIGHT}" '
            f'height="{height}" font-family="sans-serif" font-size="11">\n'
            f'<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n')


def main():
    source = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "bench.tsv")
    folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else ".")
    rows = list(rows_of(source.read_text()))
    if not rows:
        sys.exit(f"{source}: no rows")
    for name, title, columns in CHARTS:
        (folder / f"{name}.svg").write_text(chart(rows, title, columns))


if __name__ == "__main__":
    main()
