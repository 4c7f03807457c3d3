"""The page's style: two sets of colours, and a layout that is one column on a phone."""

STYLE = """
:root{--ink:#1c2430;--soft:#5b6675;--paper:#ffffff;--card:#f6f7f9;--line:#d9dee5;
--blue:#2563b0;--band:#2563b033;--open:#2f9e77;--throttle:#e0a100;--pause:#c9374b;--track:#e6e9ee}
@media (prefers-color-scheme:dark){:root{--ink:#e8ecf1;--soft:#9aa6b5;--paper:#12161c;
--card:#1b212a;--line:#2f3844;--blue:#6ea8f0;--band:#6ea8f044;--open:#3fbf92;--throttle:#f0b93a;--pause:#ef6274;--track:#2a323d}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1340px;padding:16px;background:var(--paper);color:var(--ink);
font:15px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
h1{font-size:1.5rem;margin:.2em 0}h2{font-size:1.15rem;margin:1.8em 0 .5em}h3{font-size:.95rem;margin:0 0
.3em}
p,ul{margin:.4em 0}small,.note{color:var(--soft);font-size:.85rem}
.tiles,.plots{display:grid;gap:12px;grid-template-columns:repeat(auto-fill,minmax(min(100%,230px),1fr))}
.plots{grid-template-columns:repeat(auto-fill,minmax(min(100%,340px),1fr))}
.one{max-width:590px}
.card{background:var(--card);border-radius:8px;padding:12px;min-width:0}
.tile b{display:block;font-size:1.25rem;line-height:1.2;margin:.1em 0}
svg{display:block;width:100%;height:auto;max-width:560px;font-size:11px}
svg text{fill:var(--ink)}svg .axis,svg .label{fill:var(--soft);font-size:10px}svg .figure{fill:var(--soft)}
.grid{stroke:var(--line);stroke-width:.6}.usage{fill:none;stroke:var(--blue);stroke-width:1.6}
.foretold{fill:none;stroke:var(--blue);stroke-width:1.4;stroke-dasharray:4 3}.band{fill:var(--band)}
.now{stroke:var(--soft);stroke-width:.8;stroke-dasharray:2 2}
.limit{stroke-width:1.2}.limit.soft{stroke:var(--throttle);stroke-dasharray:6 3}
.limit.hard{stroke:var(--pause)}
rect.open{fill:var(--open)}rect.throttle{fill:var(--throttle)}rect.pause{fill:var(--pause)}
.track{fill:var(--track)}.bar{fill:var(--blue)}.spread{stroke:var(--line);stroke-width:3}
.dot{fill:var(--blue);stroke:var(--card);stroke-width:1}.even{stroke:var(--soft);stroke-dasharray:4 3}
.key{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin:0 .3em 0 .9em;vertical-align:-1px}
.key.open{background:var(--open)}.key.throttle{background:var(--throttle)}.key.pause{background:var(--pause)}
.scroll{overflow-x:auto;margin-top:14px}table{border-collapse:collapse;width:100%;font-size:.88rem}
th{text-align:left;color:var(--soft);font-weight:600}th,td{padding:4px 10px 4px 0;border-bottom:1px solid
var(--line);
white-space:nowrap}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
tr.chosen td{font-weight:600}.bad{color:var(--pause);font-weight:600}
pre{background:var(--card);padding:10px;border-radius:8px;overflow-x:auto;font-size:.82rem}
"""
