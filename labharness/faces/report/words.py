"""Every phrase of a report in English and Chinese; capabilities bring theirs.

An entry point of the group ``labharness.phrases`` leads to the mapping of a capability, whose rows
are like those of ``PHRASES``. The phrase ``phase.<stage>`` names a stage of its plans.
"""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Final

from labharness.core.vocabulary.texts import in_language
from labharness.faces.report.html import Html, el, escaped, joined, text
from labharness.faces.report.words_of_spectra import SPECTRA

LANGUAGES: Final = {"en": "English", "zh": "中文"}

PHRASES: Final[dict[str, tuple[str, str]]] = {
    "title": ("Laboratory run report", "实验运行报告"),
    "none": ("none", "无"),
    "not_stated": ("not stated", "未提供"),
    "and_more": ("{count} more in the journal", "其余 {count} 条见日志"),
    # ---- the verdict
    "task_completed": ("Completed", "已完成"),
    "task_failed": ("Failed", "失败"),
    "task_rejected": ("Rejected: nothing was started", "已拒绝：未启动任何操作"),
    "aborted": ("Aborted", "已中止"),
    "no_answer": ("No answer: the journal ends without one", "无结论：日志在给出结论前结束"),
    "unchained": (
        "The journal holds no answer: this one was read from answer.json, which no hash protects.",
        "日志中没有结论：此处内容读自 answer.json，不受哈希保护。",
    ),
    "confidence": ("Confidence {value}", "置信度 {value}"),
    "asked_confidence": ("{value} was asked for", "要求不低于 {value}"),
    "of": ("{count} of {total}", "{count} / {total}"),
    "duration": ("Duration (lab time)", "用时（实验时间）"),
    "risk": ("Risk level", "风险等级"),
    "trips": ("Trips", "安全跳闸"),
    "warnings": ("Warnings", "警告"),
    "steps_done": ("Steps completed", "已完成步骤"),
    "failed_in": ("in phase {phase}, step {step}", "发生在阶段“{phase}”，第 {step} 步"),
    "driven_by": ("Driven by hand by {who}", "由 {who} 手动操作"),
    "stopped": ("Stopped: {reason}", "已停止：{reason}"),
    "rejected": ("Rejected: {reason}", "已拒绝：{reason}"),
    "last_state": ("it was last {state}", "最后状态：{state}"),
    "unconfirmed_commands": ("Commands refused or unconfirmed", "被拒绝或存疑的指令"),
    "hand_acts": ("Asked by hand", "手动操作次数"),
    "where": ("Where", "位置"),
    "reason": ("Reason", "原因"),
    "suggestion": ("What would do", "可行的做法"),
    "safe_yes": (
        "The line was brought to its safe state and every step of that was verified by read-back.",
        "设备已进入安全状态，且每一步均经回读验证。",
    ),
    "safe_no": (
        "NOT every step of the safe state could be verified: see Events.",
        "安全状态中并非每一步都能得到验证：见“事件”。",
    ),
    "safe_unknown": (
        "The journal does not show the line in its safe state at the end.",
        "日志未显示设备最终处于安全状态。",
    ),
    "simulated": (
        "Simulated instruments (seed {seed}): nothing in this report was measured on matter.",
        "仪器为模拟（种子 {seed}）：本报告中的数据并非来自真实样品。",
    ),
    # ---- what was asked
    "asked": ("What was asked", "任务内容"),
    "intent": ("Intent", "目的"),
    "capability": ("Capability", "能力"),
    "caller": ("Caller", "请求方"),
    "inputs": ("Inputs", "输入"),
    "constraints": ("Constraints", "约束"),
    "context": ("Context: the caller's own words, unchecked", "背景：请求方原文，未经核实"),
    "recipe": ("Recipe that was planned", "计划配方"),
    "approval": ("Approved by", "批准人"),
    # ---- traces
    "traces": ("Traces", "过程曲线"),
    "no_traces": (
        "No channel that has a limit was read over time: there is no chart.",
        "没有带限值的通道被持续读取，故无曲线。",
    ),
    "no_rules": (
        "This journal does not name units and limits, so no trace can be drawn.",
        "该日志未记录单位和限值，无法绘制曲线。",
    ),
    "quantity.degC": ("Temperature", "温度"),
    "quantity.K": ("Temperature", "温度"),
    "quantity.degF": ("Temperature", "温度"),
    "quantity.sccm": ("Gas flow", "气体流量"),
    "quantity.Torr": ("Pressure", "压力"),
    "quantity.ppm": ("Gas in the room", "环境气体浓度"),
    "quantity.V": ("Voltage", "电压"),
    "quantity.A": ("Current", "电流"),
    "quantity.W": ("Power", "功率"),
    "quantity.other": ("Measured", "测量值"),
    "trip_at": ("trip", "跳闸"),
    "limit.trips": ("{who} trips at {value}", "{who} 跳闸 {value}"),
    "limit.trips.all": ("all trip at {value}", "均在 {value} 跳闸"),
    "limit.warns": ("{who} warns at {value}", "{who} 警告 {value}"),
    "limit.warns.all": ("all warn at {value}", "均在 {value} 警告"),
    "limit.set": ("{who} set to ≤ {value}", "{who} 设定 ≤ {value}"),
    "limit.set.all": ("all set to ≤ {value}", "设定均 ≤ {value}"),
    "key.measured": ("measured", "实测"),
    "key.set": ("set", "设定"),
    "key.expected": ("expected by pre-flight", "预演预期"),
    "key.bound": ("may be set up to", "允许设定上限"),
    "key.trips": ("trips", "跳闸限值"),
    "key.warns": ("warns", "警告限值"),
    "phases": ("Phases (shaded)", "阶段（底色）"),
    "chart_key": (
        "Across: time since the run began, h:mm. Each column of a curve shows the lowest and the "
        "highest reading in it: no excursion is lost. Of several trips of a channel the one that "
        "acts first is drawn.",
        "横轴：运行开始后的时间，时:分。曲线每一列均保留最低与最高读数，不遗漏任何波动。"
        "同一通道有多个跳闸限值时，仅画出最先动作的一个。",
    ),
    "foreseen": (
        "Pre-flight expected on the nominal plant: {duration} for the whole plan, and {gas}.",
        "预演在标称装置上的预期：全程 {duration}，用气 {gas}。",
    ),
    "no_gas": ("no gas", "无"),
    "expected": ("Expected", "预期"),
    "if_killed": (
        "If everything that talks to the line died at a phase's end (from pre-flight)",
        "若控制端在某阶段结束时全部失效（来自预演）",
    ),
    "killed_at": (
        "if everything that talks to the line died at its hottest, at the end of {phase} ({step}):",
        "若控制端在最热时（{phase}结束时，步骤 {step}）全部失效：",
    ),
    "killed.heats.hold": (
        "{name} STAYS ON, heating to {value}, until a hardware limiter acts",
        "{name} 将持续加热，目标 {value}，直至硬件限温器动作",
    ),
    "killed.heats.hold.bare": (
        "{name} STAYS ON, heating to {value}, and no hardware limiter is recorded",
        "{name} 将持续加热，目标 {value}，且未登记任何硬件限温器",
    ),
    "killed.heats.unknown": (
        "{name} MAY STAY ON, heating to {value}, until a hardware limiter acts",
        "{name} 可能持续加热，目标 {value}，直至硬件限温器动作",
    ),
    "killed.heats.unknown.bare": (
        "{name} MAY STAY ON, heating to {value}, and no hardware limiter is recorded",
        "{name} 可能持续加热，目标 {value}，且未登记任何硬件限温器",
    ),
    "killed.heats.safe": (
        "{name} stops heating by itself within {within} s",
        "{name} 将在 {within} s 内自行停止加热",
    ),
    "killed.on.hold": ("{name} STAYS ON", "{name} 将保持接通"),
    "killed.on.unknown": ("{name} MAY STAY ON", "{name} 可能保持接通"),
    "killed.on.safe": (
        "{name} goes off by itself within {within} s",
        "{name} 将在 {within} s 内自行断开",
    ),
    "killed.flows.hold": ("{name} keeps flowing at {value}", "{name} 将以 {value} 持续流动"),
    "killed.flows.unknown": (
        "{name} may keep flowing at {value}, or stop",
        "{name} 可能以 {value} 持续流动，也可能停止",
    ),
    "killed.flows.safe": (
        "{name} stops flowing by itself within {within} s",
        "{name} 将在 {within} s 内自行停止流动",
    ),
    "killed.nothing": (
        "no heater stays on, and no gas flows",
        "没有加热器保持接通，也没有气体流动",
    ),
    "killed_hardware": ("hardware that stands before heat: {rows}", "防止过热的硬件：{rows}"),
    "killed_channels": ("by channel: {rows}", "各通道：{rows}"),
    "no_forecast": ("No prediction was recorded with this run.", "本次运行未记录预测轨迹。"),
    "channel": ("Channel", "通道"),
    "lowest": ("Lowest", "最低"),
    "highest": ("Highest", "最高"),
    "settable": ("May be set up to", "允许设定上限"),
    "trips_at": ("Trips at", "跳闸限值"),
    "first": ("acts first", "最先动作"),
    "later": ("after it", "其后"),
    "warns_only": ("only warns", "仅警告"),
    "source": ("Sources of the limits", "限值依据"),
    "phase": ("Phase", "阶段"),
    "start": ("Start", "开始"),
    "took": ("Took", "用时"),
    "run": ("run", "运行"),
    "conditions": ("Conditions", "条件"),
    "results": ("Results", "结果"),
    # ---- the record
    "steps": ("Steps", "步骤"),
    "description": ("Description", "说明"),
    "status": ("Status", "状态"),
    "events": ("Events", "事件"),
    "time": ("Time", "时间"),
    "kind": ("Kind", "类别"),
    "recorded": ("As recorded", "记录原文"),
    "commands": ("Physical commands", "物理指令"),
    "ending.confirmed": ("{count} confirmed by read-back", "{count} 条经回读确认"),
    "unshown": (
        "{count} sent to channels that have no read-back: {rows}",
        "{count} 条发往无回读的通道：{rows}",
    ),
    "ending.unconfirmed": ("{count} NOT CONFIRMED", "{count} 条未确认"),
    "ending.refused": ("{count} REFUSED: nothing was sent", "{count} 条被拒绝：未发送"),
    "ending.mismatch": ("{count} READ BACK OTHERWISE", "{count} 条回读不符"),
    "ending.failed": ("{count} FAILED", "{count} 条失败"),
    "ending.unknown": ("{count} OF UNKNOWN EFFECT", "{count} 条结果未知"),
    "by_hand": ("By hand", "手动操作"),
    "instruments": ("Instruments", "仪器"),
    "instrument": ("Instrument", "仪器"),
    "model": ("Model", "型号"),
    "firmware": ("Firmware", "固件"),
    "no_instruments": ("No instrument was asked who it is.", "未向任何仪器查询身份。"),
    "provenance": ("Provenance", "溯源"),
    "session": ("Session", "会话"),
    "began": ("Lab time began", "实验时间起点"),
    "chain": ("Journal", "日志"),
    "chain_holds": ("the hash chain of {count} records holds", "{count} 条记录的哈希链完好"),
    "chain_broken": (
        "THE HASH CHAIN IS BROKEN at record {count}: {reason}",
        "哈希链在第 {count} 条记录处断裂：{reason}",
    ),
    "chain_head": ("Chain head", "链头"),
    "plan_digest": ("Digest of the plan", "计划摘要"),
    "lab_digest": ("Digest of the lab file", "实验室文件摘要"),
    "envelope_digest": ("Digest of the envelope", "安全包络摘要"),
    "ambient_torr": (
        "Pressure of the room, in Torr; pressures of this report are absolute",
        "室内气压（Torr）；本报告中的压力均为绝对压力",
    ),
    "versions": ("Versions", "版本"),
    "seed": ("Seed", "随机种子"),
    "artifacts": ("Files of the run", "运行文件"),
    "bytes": ("Bytes", "字节"),
    "checksum": ("Checksum", "校验和"),
    "holds": ("holds", "一致"),
    "broken": ("MISSING OR CHANGED", "缺失或已更改"),
    "foot": (
        "Made from the run's journal and artifacts alone. No safety integrity level is claimed.",
        "仅由本次运行的日志和文件生成。不声明任何安全完整性等级。",
    ),
    # ---- two runs
    "two_runs": ("Two runs compared", "两次运行对比"),
    "differs": ("What differs", "差异"),
    "differs_nothing": ("Nothing differs.", "没有差异。"),
    "part.asked": ("asked", "任务内容"),
    "part.recipe": ("recipe", "配方"),
    "part.provenance": ("provenance", "溯源"),
    "part.instruments": ("instruments", "仪器"),
    "part.phases": ("phases: how long", "阶段用时"),
    "part.traces": ("traces", "过程曲线"),
    "part.events": ("events", "事件"),
    "part.answer": ("answer", "结论"),
    "time_axis": ("time since the run began, h:mm", "运行开始后的时间，时:分"),
    "two_charts_key": (
        "Colour: the run. Line: measured; dashed: set. Each column of a curve shows the lowest and "
        "the highest reading in it.",
        "颜色区分运行。实线：实测；虚线：设定。曲线每一列均保留最低与最高读数。",
    ),
    "two_trips_key": (
        "Red line: the line tripped, with the number of the run.",
        "红线：跳闸，附运行编号。",
    ),
    "foot_two": (
        "Made from the journals and artifacts of both runs alone. No safety integrity level is "
        "claimed.",
        "仅由两次运行的日志和文件生成。不声明任何安全完整性等级。",
    ),
    # ---- words of the record
    "phase.arming": ("arming", "上电准备"),
    "phase.preflight": ("pre-flight", "预演"),
    "phase.report": ("report", "报告"),
    "status.PENDING": ("not begun", "未开始"),
    "status.RUNNING": ("begun, not ended", "已开始，未结束"),
    "status.COMPLETED": ("completed", "完成"),
    "status.FAILED": ("failed", "失败"),
    "status.SKIPPED": ("skipped", "跳过"),
    "status.TIMEOUT": ("timed out", "超时"),
    "state.PENDING": ("pending", "待定"),
    "state.RUNNING": ("running", "运行中"),
    "state.PAUSED": ("held", "已暂停"),
    "state.ABORTING": ("being stopped", "中止中"),
    "event.unconfirmed": ("command", "指令"),
    "event.by_hand": ("by hand", "手动"),
    "event.state": ("session", "会话"),
    "event.trip": ("trip", "跳闸"),
    "event.warning": ("warning", "警告"),
    "event.error": ("error", "错误"),
    "event.log": ("operator", "操作员"),
    "event.command": ("command", "指令"),
    "event.approved": ("approval", "批准"),
    "event.make_safe": ("making safe", "进入安全状态"),
    "event.verified": ("verified", "验证"),
    "event.mode": ("line", "设备模式"),
    "event.armed": ("armed", "布防"),
    "event.cooled": ("cooling", "冷却"),
    "event.disarmed": ("disarmed", "撤防"),
    **SPECTRA,
}


@cache  # what is installed does not change while a process runs
def phrases() -> Mapping[str, tuple[str, str]]:
    """Return all phrases by their keys; a capability adds some, and replaces none of these."""
    found: dict[str, tuple[str, str]] = {}
    for point in entry_points(group="labharness.phrases"):
        try:
            found |= point.load()
        except Exception:  # noqa: BLE001 - another package's module may raise any error
            continue
    return {**found, **PHRASES}


def phrase(key: str) -> tuple[str, str]:
    """Return a phrase in English and in Chinese."""
    return phrases()[key]


def say(key: str, *, tag: str = "span", **fields: object) -> Html:
    """Return a phrase in both languages; the page's style shows one.

    Args:
        key: Of ``phrases()``.
        tag: ``tspan`` within a drawing.
        fields: Values of the phrase's blanks; escaped unless they are ``Html``.
    """
    safe = {name: escaped(each) for name, each in fields.items()}
    return _in_both(tag, *(Html(text(each).format(**safe)) for each in phrase(key)))


def known(group: str, word: str, *, tag: str = "span") -> Html:
    """Return a recorded word in both languages where it is known, else as it was recorded."""
    key = f"{group}.{word}"
    return say(key, tag=tag) if key in phrases() else text(word)


def plain(key: str, language: str = "en", **fields: object) -> str:
    """Return a phrase in one language as plain text: a page's title, a line of a terminal.

    Raises:
        KeyError: There is no such phrase or language.
    """
    return dict(zip(LANGUAGES, phrase(key), strict=True))[language].format(**fields)


def both(raw: object) -> Html:
    """Return a recorded text in both languages; one that has no code, as it was recorded."""
    recorded = raw if isinstance(raw, str) else str(raw)
    english, chinese = (in_language(recorded, each) for each in LANGUAGES)
    return text(recorded) if english == chinese else _in_both("span", english, chinese)


def phase_text(name: str, language: str = "en") -> str:
    """Return a recorded phase by its name in the report; an unknown one as it was recorded."""
    key = f"phase.{name}"
    return plain(key, language) if key in phrases() else name


def _in_both(tag: str, *said: str) -> Html:
    languages = zip(LANGUAGES, said, strict=True)
    return joined(*(el(tag, each, class_=name, lang=name) for name, each in languages))
