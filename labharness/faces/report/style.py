"""How the page looks, on a screen, a phone and paper."""

from typing import Final

__all__ = ["STYLE"]

STYLE: Final = """
:root{color-scheme:light;--line:#d4d8dd;--soft:#f4f6f8;--ink:#1c2127;--dim:#5b6570}
*{box-sizing:border-box}
body{margin:0;background:#fff;color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI",
Roboto,"Noto Sans","Noto Sans CJK SC","PingFang SC","Microsoft YaHei",sans-serif}
main{max-width:1100px;margin:0 auto;padding:12px 20px 40px}
.choice{position:absolute;opacity:0;pointer-events:none}
nav{max-width:1100px;margin:0 auto;padding:10px 20px 0;text-align:right;font-size:14px}
nav label{padding:3px 10px;border:1px solid var(--line);border-radius:4px;cursor:pointer}
#en:checked~main .zh,#zh:checked~main .en{display:none}
#en:checked~nav label[for=en],#zh:checked~nav label[for=zh]{background:var(--ink);color:#fff}
#en:focus-visible~nav label[for=en],#zh:focus-visible~nav label[for=zh]{outline:2px solid #0072b2}
.masthead{font-size:14px;color:var(--dim);margin:0 0 4px}
h1{font-size:16px;font-weight:600;color:var(--dim);margin:0 0 10px}
h2{font-size:20px;margin:36px 0 10px;padding-top:10px;border-top:1px solid var(--line)}
p{margin:8px 0}
.verdict{border-left:8px solid #6b7580;background:var(--soft);padding:16px 20px;border-radius:4px}
.verdict.task_completed{border-color:#00875a}
.verdict.task_failed{border-color:#c62828}
.verdict.task_rejected,.verdict.aborted{border-color:#b26a00}
.verdict .ending{font-weight:600;color:var(--dim)}
.verdict .big{font-size:34px;line-height:1.2;font-weight:700;margin:2px 0 6px;
overflow-wrap:anywhere}
.verdict .big.long{font-size:22px}
.sure{height:10px;background:#dde2e7;border-radius:5px;position:relative;margin:8px 0 4px;
max-width:420px}
.sure svg{display:block;width:100%;height:10px}
dl.glance{display:flex;flex-wrap:wrap;gap:10px 28px;margin:14px 0 0}
dl.glance>div{min-width:max-content}
dl.glance dt{font-size:13px;color:var(--dim)}
dl.glance dd{margin:0;font-weight:600}
.simulated{margin:12px 0 0;padding:8px 12px;border:1px dashed #8a6d00;background:#fff8e1;
border-radius:4px}
.alarm{color:#b00020;font-weight:600}
dl.facts{display:grid;grid-template-columns:minmax(120px,230px) 1fr;gap:6px 18px;margin:0}
dl.facts dt{color:var(--dim)}
dl.facts dd{margin:0;overflow-wrap:anywhere}
.said{overflow-wrap:anywhere;white-space:pre-wrap}
pre{margin:0;white-space:pre-wrap;overflow-wrap:anywhere;font:13px/1.45 ui-monospace,Consolas,
"DejaVu Sans Mono",monospace}
.quoted{border-left:3px solid var(--line);padding-left:12px;color:#333}
.digest{font:13px/1.5 ui-monospace,Consolas,"DejaVu Sans Mono",monospace;overflow-wrap:anywhere}
.note{font-size:13px;color:var(--dim)}
figure{margin:14px 0 20px}
figcaption{margin-bottom:4px}
.legend span{margin-left:14px;font-size:14px;white-space:nowrap}
.legend i{font-style:normal}
.c0{color:#0072b2;fill:#0072b2}.c1{color:#d55e00;fill:#c05000}.c2{color:#009e73;fill:#007a58}
.c3{color:#8a4f9e;fill:#8a4f9e}.c4{color:#a6761d;fill:#8a6010}.c5{color:#4d4d4d;fill:#4d4d4d}
.key span{margin-right:14px;white-space:nowrap}.key .sample{display:inline-block;width:34px;
height:12px;vertical-align:middle}.sample line,.sample rect{stroke:#39424c}
.sample rect{stroke:none;fill:#39424c}
.phases{overflow-wrap:anywhere}
svg{display:block;width:100%;height:auto}
svg text{font-size:12px;fill:#39424c;paint-order:stroke;stroke:#fff;stroke-opacity:.75;
stroke-width:3px;stroke-linejoin:round}
svg text.halo{stroke-opacity:.95;stroke-width:4px}
svg .small{font-size:10px}
svg .in{fill:#fff;stroke:none;font-weight:700}
svg .grid{stroke:#e3e7eb;stroke-width:.7}
svg .axis{stroke:#8b949e;stroke-width:.8}
svg .phase{fill:#fff}
svg .phase.odd{fill:#eef2f6}
svg .trace{stroke-width:1.6;stroke-linejoin:round}
svg .over{opacity:.7}
svg .set:not(.limit){stroke-width:1;stroke-dasharray:5 3;opacity:.75}
svg .predicted{stroke-width:1.2;stroke-dasharray:9 3 2 3}
svg .band{opacity:.16}
svg line.limit.trips{stroke:#c62828;stroke-width:1.4}
svg line.limit.warns{stroke:#b26a00;stroke-width:1.2;stroke-dasharray:12 5}
svg line.limit.set{stroke-width:1.4;stroke-dasharray:1.5 4;opacity:1}
svg .leader{stroke:#8b949e;stroke-width:.8}svg text.trip{fill:#b00020}
svg line.trip{stroke:#b00020;stroke-width:2}
svg .warning{fill:#e09600}
svg .point{fill:#39424c}
svg .fitted{stroke:#d55e00;stroke-width:1.6}
svg .ground{stroke:#8b949e;stroke-width:1;stroke-dasharray:4 3}
svg.posterior{max-width:460px}
.narrow{display:none}
.pair{display:grid;grid-template-columns:1fr 1fr;gap:0 28px}
.pair svg{max-width:520px}
.trio{display:grid;grid-template-columns:repeat(auto-fill,minmax(300px,1fr));gap:0 16px}
.trio svg{max-width:380px}
.verdict+dl.facts{margin-top:14px}section+section>.verdict{margin-top:44px}
table.lines th:first-child{text-align:left}
.scroll{overflow-x:auto;margin:8px 0}
table{border-collapse:collapse;width:100%;font-size:14px}
table.slim{width:auto}table.slim td,table.slim th{padding-right:24px}
td.said{min-width:230px}
td.source{min-width:300px}td.name{white-space:nowrap}
h3{font-size:15px;margin:18px 0 6px}dl.small{font-size:13px}
th,td{text-align:left;vertical-align:top;padding:4px 10px 4px 0;border-bottom:1px solid #e6e9ed}
th{color:var(--dim);font-weight:600}
.figures th{text-align:right}.time{white-space:nowrap;font-variant-numeric:tabular-nums}
.number{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
tr.total td,tr.total th{border-top:2px solid var(--line);font-weight:600;color:var(--ink)}
tr.bad td{background:#fdecea}
footer{margin-top:36px;font-size:13px;color:var(--dim)}
@media (max-width:640px){
body{font-size:15px}main,nav{padding-left:12px;padding-right:12px}
.wide{display:none}.narrow{display:block}
.pair{grid-template-columns:1fr}
.verdict{padding:12px 14px}.verdict .big{font-size:26px}.verdict .big.long{font-size:18px}
dl.glance{display:grid;grid-template-columns:1fr 1fr}dl.glance>div{min-width:0}
dl.glance>div:first-child{grid-column:1/-1}
.cards thead{display:none}.cards tr{display:block;border-bottom:1px solid var(--line);
padding:7px 0}.cards td{display:block;border:0;padding:1px 0;min-width:0;white-space:normal}
.cards td.number{display:inline;float:left;margin-right:8px;color:var(--dim)}
.cards td[data-en]::before{color:var(--dim);font-size:12px}
#en:checked~main .cards td[data-en]::before{content:attr(data-en) ": "}
#zh:checked~main .cards td[data-zh]::before{content:attr(data-zh) "："}
.cards td div{display:inline}.cards td div+div::before{content:"; "}
dl.facts{grid-template-columns:1fr;gap:0}dl.facts dd{margin-bottom:10px}
.legend span{display:inline-block;margin-left:0;margin-right:12px}.legend{display:block}
}
@media print{
@page{margin:14mm}
body{font-size:10.5pt}nav{display:none}main{max-width:none;padding:0}
.wide{display:block}.narrow{display:none}.scroll{overflow:visible}
table{font-size:9pt}h2,h3,.key,dt{break-after:avoid}figure,tr,.verdict{break-inside:avoid}
dd{orphans:3;widows:3}.pair svg{max-width:260px}
dl.facts{display:block}dl.facts dt{float:left;clear:left;width:125px}
dl.facts dd{margin:0 0 4px 135px;orphans:1}dl.facts dd::after{content:"";display:block;clear:left}
.pair{display:block}.pair figure{display:inline-block;width:49%;vertical-align:top}
figure{margin:8px 0 10px}
thead{display:table-header-group;break-inside:avoid}
tbody tr:nth-child(-n+2){break-after:avoid}tbody tr:nth-last-child(-n+2){break-before:avoid}
h2{margin-top:16px;padding-top:6px}td.said,td.source{min-width:0}th,td{padding:3px 8px 3px 0}
th.wordy{min-width:210px}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}
}
"""
