"""Phrases for spectra and their report, in English and Chinese; `words` joins them to the rest."""

from typing import Final

SPECTRA: Final[dict[str, tuple[str, str]]] = {
    "spectra_title": ("Analysis of spectra", "光谱分析"),
    "spectra_of": ("{count} files", "{count} 个文件"),
    "spectra_foot": (
        "Made from the files of spectra alone. Every number is in the table that --table writes.",
        "仅由光谱文件生成。所有数值均在 --table 写出的表格中。",
    ),
    "spectra_unread": ("Not read", "未能读取"),
    "read_as": ("Read as", "读取格式"),
    "read_as_text": (
        "{format}: {count} × {points} points, {low}–{high} cm⁻¹",
        "{format}：{count} × {points} 点，{low}–{high} cm⁻¹",
    ),
    "shows": ("Shows", "显示"),
    "shows_in": ("{material} in {count}", "{material}：{count} 条"),
    "lines_of": ("Lines measured of", "所测谱峰"),
    "lines_of_text": ("{material}; background: {baseline}", "{material}；背景：{baseline}"),
    "probability": ("Probability of layers", "各层数的概率"),
    "name_probability": ("Probability of the name", "名称的概率"),
    "no_count": ("No layer count", "无层数结论"),
    "note": ("Note", "说明"),
    "peaks": ("Lines", "谱峰"),
    "peak": ("line", "谱峰"),
    "seen": ("stands out in", "可见于"),
    "position": ("position, cm⁻¹", "位置，cm⁻¹"),
    "width": ("width (FWHM), cm⁻¹", "宽度 (FWHM)，cm⁻¹"),
    "height": ("height, counts", "高度，计数"),
    "area": ("area, counts·cm⁻¹", "面积，计数·cm⁻¹"),
    "peaks_one": (
        "Value ± one sigma. Counts are the unit of intensity of the file.",
        "数值 ± 1σ。计数为文件自身的强度单位。",
    ),
    "peaks_many": (
        "Median over the spectra in which the line stands out ± their scatter (1.4826 × median "
        "deviation), which is not an error. Counts are the unit of intensity of the file.",
        "在谱峰可见的光谱中取中位数 ± 离散度（1.4826 × 绝对偏差中位数），并非误差。"
        "计数为文件自身的强度单位。",
    ),
    "peaks_none": (
        "No line is known to be measured here; --window LOW-HIGH fits one.",
        "此处没有已知谱峰可测；可用 --window LOW-HIGH 拟合。",
    ),
    "clearest": (
        "Spectrum {index} of {count}, the clearest",
        "第 {index} 条光谱（共 {count} 条），最清晰者",
    ),
    "whole": ("Whole spectrum; shaded is what is fitted below", "完整光谱；阴影为下方拟合的范围"),
    "spectra_fit_key": (
        "Points: measured. Line: Lorentz lines on their background (dashed). Below: residuals in "
        "units of one sigma of the pixel; what is further off is drawn at the edge.",
        "点：测量值。线：洛伦兹峰加背景（虚线）。下方：以像素 1σ 为单位的残差，超出者画在边缘。",
    ),
    "maps": ("Maps", "分布图"),
    "maps_key": (
        "Colours and axes span the middle 96 % of the values. Grey: the line does not stand out.",
        "颜色与坐标轴覆盖中间 96 % 的数值。灰色：谱峰不可见。",
    ),
    "pl_band": ("Photoluminescence", "光致发光"),
    "pl_text": (
        "{position} nm ({energy} eV), {width} nm wide, height {height}",
        "{position} nm（{energy} eV），宽 {width} nm，高 {height}",
    ),
    "pl_none": ("no band stands out", "没有可见的发光带"),
    "pl_ratio": (
        "{ratio} times the height of {line}, if both were taken alike; no evidence of layers "
        "without this microscope's value for one",
        "为 {line} 高度的 {ratio} 倍（若测量条件相同）；没有本显微镜单层的标定值，不作为层数证据",
    ),
    "intensity": ("intensity, unit of the file", "强度，文件单位"),
    # ---- drawings of spectra
    "laser": ("Laser wavelength", "激光波长"),
    "wavelength_axis": ("wavelength, nm", "波长，nm"),
    "shift_axis": ("Raman shift, cm⁻¹", "拉曼位移，cm⁻¹"),
    "counts": ("counts", "计数"),
    "legend_point": ("measured", "实测"),
    "legend_fitted": ("fit", "拟合"),
    "legend_ground": ("background", "背景"),
    "residual": ("residual, σ", "残差，σ"),
}
