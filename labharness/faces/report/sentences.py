"""Sentences that the harness itself writes into a journal, and what they are in Chinese.

Texts of files, people and other capabilities stay as they were recorded.
"""

import re
from functools import lru_cache
from typing import Final

from labharness.faces.report.html import Html, el, joined, text

__all__ = ["SENTENCES", "both", "chinese"]

SENTENCES: Final[dict[str, str]] = {
    # ---- states, modes, procedures, causes
    "{} → {}: {}": "{} → {}：{}",
    "PENDING": "待定",
    "RUNNING": "运行中",
    "PAUSED": "已暂停",
    "COMPLETED": "已完成",
    "FAILED": "失败",
    "REJECTED": "已拒绝",
    "ABORTING": "中止中",
    "ABORTED": "已中止",
    "accepted": "已接受",
    "results delivered": "结果已交付",
    "the hold has ended: {}": "暂停结束：{}",
    "arming": "布防中",
    "held": "等待",
    "running": "运行",
    "disarmed": "已撤防",
    "tripped": "已跳闸",
    "hold": "保持不变",
    "unknown": "未知",
    "safe({})": "{} s 内自行转入安全",
    "immediate_shutdown": "立即停机",
    "close_all_valves_and_alert": "关闭所有气阀并报警",
    "relieve_pressure": "泄压",
    "hold_vacuum": "保持真空",
    "immediate_shutdown: {}": "立即停机：{}",
    "close_all_valves_and_alert: {}": "关闭所有气阀并报警：{}",
    "relieve_pressure: {}": "泄压：{}",
    "hold_vacuum: {}": "保持真空：{}",
    "gas_leak_detected: {}": "气体泄漏：{}",
    "emergency_stop_loop: {}": "急停回路：{}",
    "over_pressure: {}": "超压：{}",
    "sensor_break: {}": "传感器断线：{}",
    "over_temperature: {}": "超温：{}",
    "over_flow: {}": "流量超限：{}",
    "interlock_lost: {}": "联锁丢失：{}",
    "communication: {}": "通信中断：{}",
    "journal_lost: {}": "日志丢失：{}",
    "stop_request: {}": "停止请求：{}",
    # ---- commands and limits
    "{}: REFUSED: {}": "{}：已拒绝：{}",
    "{}: MISMATCH, reads {}: {}": "{}：回读不符，读数 {}：{}",
    "{}: MISMATCH, reads {}": "{}：回读不符，读数 {}",
    "{}: FAILED: {}": "{}：失败：{}",
    "{}: UNKNOWN: {}": "{}：结果未知：{}",
    "{}: confirmed, reads {}": "{}：已确认，读数 {}",
    "{}: unconfirmed: nothing can show it": "{}：未确认：无回读通道",
    "{} has no limit, so it is not set": "{} 没有限值，不予设定",
    "{}: asked {}, allowed {} to {}": "{}：请求 {}，允许 {} 至 {}",
    "{} is not set while the line is {}": "设备处于“{}”时不设定 {}",
    "{} to {} takes {}; {}": "{} 设为 {} 需要：{}；{}",
    "{} at least {}": "{} 至少 {}",
    "{} at most {}": "{} 至多 {}",
    "tube purged of {} by {} volumes": "管内 {} 已吹扫 {} 倍体积",
    "it reads {}": "读数 {}",
    "{} was last heard {} s ago, allowed {} s": "{} 已 {} s 无响应，允许 {} s",
    "{}: {} is {}, at most {}": "{}：{} 为 {}，上限 {}",
    "{}: {} is {}, at least {}": "{}：{} 为 {}，下限 {}",
    "temperature above the safety envelope": "温度超出安全包络",
    "pressure above the safety envelope": "压力超出安全包络",
    "gas_flow_rate above the safety envelope": "气体流量超出安全包络",
    # ---- two runs
    "{}, highest": "{}，最高",
    "{}, mean in {}": "{}，{}期间均值",
    "{} entries": "{} 项",
    # ---- what people ask by hand
    "set {} by hand ({}): {}": "手动设定 {}（{}）：{}",
    "set {} by hand ({})": "手动设定 {}（{}）",
    "hold by hand ({}): {}": "手动暂停（{}）：{}",
    "hold by hand ({})": "手动暂停（{}）",
    "resume by hand ({}): {}": "手动继续（{}）：{}",
    "resume by hand ({})": "手动继续（{}）",
    "stop request by hand ({}): {}": "手动停止请求（{}）：{}",
    "stop request by hand ({})": "手动停止请求（{}）",
    "stop request ({})": "停止请求（{}）",
    "air": "空气",
    "hydrogen": "氢气",
    # ---- steps of a growth
    "Furnace: open the contactor": "炉子：断开接触器",
    "Sulfur: open the contactor": "硫源：断开接触器",
    "Furnace: let the setpoint fall by {} degC/min": "炉子：设定值以 {} °C/min 下降",
    "Sulfur: let the setpoint fall by {} degC/min": "硫源：设定值以 {} °C/min 下降",
    "Keep sulfur over the film until the furnace is below {} degC": (
        "在炉温低于 {} °C 之前保持硫气氛"
    ),
    "Furnace: controller to manual": "炉子：控制器转手动",
    "Sulfur: controller to manual": "硫源：控制器转手动",
    "Furnace: output to 0 %": "炉子：输出降至 0 %",
    "Sulfur: output to 0 %": "硫源：输出降至 0 %",
    "Furnace: setpoint to 20 degC": "炉子：设定值降至 20 °C",
    "Sulfur: setpoint to 20 degC": "硫源：设定值降至 20 °C",
    "Wait until the furnace is cold enough to open the tube": "等待炉子冷却至可开管",
    "Wait until the sulfur is cold enough to open the tube": "等待硫源冷却至可开管",
    "Wait until the sulfur is cold enough too": "等待硫源也冷却",
    "Flush the tube": "冲洗石英管",
    "Have an operator load boats and substrate": "由操作员装入料舟和衬底",
    "Load {} mg MoO3 and the {} substrate above it, {} mg sulfur upstream, and shut the lid.": (
        "装入 {} mg MoO3，其上放置 {} 衬底，上游放 {} mg 硫，然后关盖。"
    ),
    "See the lid shut": "确认盖已关",
    "Shut the nitrogen bypass": "关闭氮气旁路",
    "Stop argon": "停止氩气",
    "Shut the argon valve: it may leak too": "关闭氩气阀：它也可能泄漏",
    "Shut the vent, or the pump draws oil": "关闭排气口，以免泵吸入油",
    "Start the pump": "启动泵",
    "Open the tube to the pump": "将管接通至泵",
    "Pump down": "抽真空",
    "Isolate the tube": "隔离管",
    "Measure how fast the isolated tube fills": "测量隔离后的升压速率",
    "Stop the pump": "停泵",
    "Open the argon valve": "打开氩气阀",
    "Fill the tube with argon": "向管内充氩",
    "Wait for one atmosphere": "等待达到一个大气压",
    "Wait for the pressure of the room": "等待达到室内气压",
    "Open the vent to the bubbler": "打开通往鼓泡器的排气口",
    "Set the purge flow": "设定吹扫流量",
    "Purge {} tube volumes by measured flow": "按实测流量吹扫 {} 倍管体积",
    "Set the carrier gas": "设定载气",
    "Give the furnace mains": "接通炉子电源",
    "Give the sulfur heater mains": "接通硫加热器电源",
    "Open the hydrogen valve": "打开氢气阀",
    "Set hydrogen": "设定氢气",
    "Stop hydrogen": "停止氢气",
    "Shut the hydrogen valve": "关闭氢气阀",
    "Heat the furnace to {} degC at {} degC/min": "以 {1} °C/min 将炉子加热至 {0} °C",
    "Limit the sulfur's rate": "限制硫源升温速率",
    "Start to heat the sulfur": "开始加热硫源",
    "See the sulfur at temperature before MoO3 evaporates": "在 MoO3 蒸发前确认硫源到温",
    "Grow for {} s": "生长 {} s",
    "Flush while cooling": "冷却时冲洗",
    "Flush {} tube volumes against {} before the lid opens": "开盖前冲洗 {} 倍管体积以除去 {}",
    "Leave a little argon flowing": "保持少量氩气流动",
    "Have an operator bring the sample to the microscope": "由操作员将样品移至显微镜",
    "Take the sample out of the tube, put it under the microscope, and shut the lid and the laser "
    "enclosure.": "从管中取出样品，放到显微镜下，然后关好管盖和激光罩。",
    "See the laser enclosure shut": "确认激光罩已关",
    "Set a power that does not heat the film": "设定不会加热薄膜的功率",
    "Turn to the Raman lines": "转到拉曼谱线",
    "Look for film on a grid of places": "按网格寻找薄膜",
    "Take Raman spectra at up to {} places with film": "在至多 {} 处有薄膜的位置采集拉曼光谱",
    "Turn to the photoluminescence": "转到光致发光",
    "Take the photoluminescence of the same places": "采集同样位置的光致发光",
    "Turn back to Raman": "转回拉曼",
    "Judge the number of layers, with more spots if these leave doubt": (
        "判断层数；若有疑问则增加测量点"
    ),
    "See the laser off": "确认激光已关",
    # ---- evidence and verdict
    "A1g - E2g separation": "A1g − E2g 峰间距",
    "A1g/Si height ratio": "A1g/Si 峰高比",
    "PL/Raman height ratio": "PL/拉曼峰高比",
    "strain, doping and paper to paper: tau {} cm⁻¹ ({}); axis {} cm⁻¹; {} outliers": (
        "应变、掺杂及文献差异：tau {} cm⁻¹（{}）；轴 {} cm⁻¹；离群值 {}"
    ),
    "CVD as grown, CVD, strained in every layer": "CVD 生长态；CVD，各层均有应变",
    "oxide, focus and texture: {}; between samples ln spread {}": (
        "氧化层、聚焦与织构：{}；样品间 ln 离散 {}"
    ),
    "defects and doping quench: {}; between samples ln spread {}; two or more layers {} times "
    "darker, ln spread {}": (
        "缺陷与掺杂淬灭：{}；样品间 ln 离散 {}；两层及以上暗 {} 倍，ln 离散 {}"
    ),
    "not calibrated on this microscope, ln spread {}": "本显微镜未校准，ln 离散 {}",
    "one layer {} ± {} on {}": "单层为 {} ± {}，校准于 {}",
    "the most likely count, {}, has a probability of {}; {} is needed": (
        "最可能的层数 {} 的概率为 {}；要求 {}"
    ),
    "a separation alone tells one layer and bulk, never two to five: a strained monolayer looks "
    "like a relaxed bilayer": (
        "仅凭峰间距只能区分单层与块体，无法区分二至五层：有应变的单层与弛豫的双层相似"
    ),
    "a separation alone does not tell bulk from five layers that are strained": (
        "仅凭峰间距无法区分块体与有应变的五层"
    ),
    "spots differ, and a separation alone does not tell twisted from other bilayers: which class "
    "there is more of is open": "各点不同；仅凭峰间距无法区分扭转双层与其他双层，故哪一类更多未定",
    "weak lines lower the confidence in {} to {}; {} is needed": (
        "谱线弱使 {} 层的置信度降至 {}；要求 {}"
    ),
    "{} of {} judged spots are {}": "{1} 个已判断的测量点中有 {0} 个为 {2} 层",
    "6 means six or more": "6 表示六层或更多",
    "6 or more": "6 层或更多",
    "no silicon line: positions are uncalibrated, A1g/Si is unknown": (
        "没有硅峰：峰位未校准，A1g/Si 未知"
    ),
    "lines of disordered film: three rows of the separation table averaged": (
        "薄膜无序：取峰间距表三行的平均"
    ),
    "no film at any of {} surveyed places": "勘察的 {} 个位置均无薄膜",
    "confidence {} in {} layers is below the threshold {} after {} spots ({})": (
        "测量 {3} 点后，{1} 层的置信度 {0} 低于要求的 {2}（{4}）"
    ),
    'the intent says "{}", and that was not met: {}': "任务文字要求“{}”，未达到：{}",
    "monolayer on at least {} % of the film": "薄膜至少 {} % 为单层",
    "bilayer on at least {} % of the film": "薄膜至少 {} % 为双层",
    "{} layers on at least {} % of the film": "薄膜至少 {1} % 为 {0} 层",
    "monolayer on most of the film": "薄膜主要为单层",
    "bilayer on most of the film": "薄膜主要为双层",
    "{} layers on most of the film": "薄膜主要为 {} 层",
    "mixed: {}; which there is more of is open": "混合：{}；哪一类更多未定",
    "mixed: {}": "混合：{}",
    "{} % one layer, {} % two": "{} % 单层，{} % 双层",
    "{} % two layers, {} % one layer": "{} % 双层，{} % 单层",
    "layers undetermined": "层数未能确定",
    "no film": "没有薄膜",
    "the layer count is undetermined after {} spots: {}": "测量 {} 点后仍无法确定层数：{}",
}

NESTED_MAX: Final = 4
"""How deep a sentence within a sentence is translated."""

CHARACTERS_MAX: Final = 1000
"""A longer text is nobody's sentence here."""


def both(raw: object) -> Html:
    """Return a recorded text, in both languages where the harness wrote it."""
    recorded = str(raw)
    ours = chinese(recorded)
    if ours == recorded:
        return text(recorded)
    english = el("span", recorded, class_="en", lang="en")
    return joined(english, el("span", ours, class_="zh", lang="zh"))


def chinese(recorded: str, depth: int = 0) -> str:
    """Return the Chinese of a sentence of the harness; any other text as it is."""
    if recorded in SENTENCES and "{" not in recorded:
        return SENTENCES[recorded]
    if len(recorded) > CHARACTERS_MAX or depth > NESTED_MAX:
        return recorded
    for pattern, ours in _patterns():
        found = pattern.fullmatch(recorded)
        if found is not None:
            return ours.format(*(chinese(each, depth + 1) for each in found.groups()))
    return recorded


@lru_cache(maxsize=1)
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple(
        (re.compile("([^\n]+?)".join(map(re.escape, english.split("{}")))), ours)
        for english, ours in SENTENCES.items()
        if "{}" in english
    )
