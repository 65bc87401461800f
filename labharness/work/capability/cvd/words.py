"""Phrases of the report of a growth, in English and Chinese."""

from typing import Final

PHRASES: Final[dict[str, tuple[str, str]]] = {
    # ---- phases of the plan
    "phase.loading": ("loading", "装样"),
    "phase.leak_check": ("leak check", "检漏"),
    "phase.purge": ("purge", "吹扫"),
    "phase.ramp": ("ramp", "升温"),
    "phase.material_growth": ("growth", "生长"),
    "phase.cooling": ("cooling", "冷却"),
    "phase.transfer": ("transfer", "转移"),
    "phase.characterisation": ("characterisation", "表征"),
    "phase.analysis": ("analysis", "分析"),
    # ---- the answer
    "layers_1": ("Monolayer: 1 layer", "单层：1 层"),
    "layers_2": ("Bilayer: 2 layers", "双层：2 层"),
    "layers_n": ("{count} layers", "{count} 层"),
    "layers_many": ("6 or more layers", "6 层或更多"),
    "class_1": ("one layer", "单层"),
    "class_2": ("two layers", "双层"),
    "class_3": ("three layers", "三层"),
    "class_4": ("four layers", "四层"),
    "class_5": ("five layers", "五层"),
    "class_6": ("six or more layers", "六层或更多"),
    "film_1": ("Monolayer", "单层"),
    "film_2": ("Bilayer", "双层"),
    "film_3": ("Three layers", "三层"),
    "film_4": ("Four layers", "四层"),
    "film_5": ("Five layers", "五层"),
    "film_6": ("Six or more layers", "六层或更多"),
    "claim_film": ("{name} on at least 75 % of the film", "薄膜至少 75 % 为{name}"),
    "claim_place": ("{name} at the one place measured", "所测的一处为{name}"),
    "claim_mainly": ("{name} on most of the film", "薄膜主要为{name}"),
    "claim_mixed": ("Mixed: {shares}", "混合：{shares}"),
    "claim_no_film": ("No film", "没有薄膜"),
    "claim_undetermined": ("Number of layers: undetermined", "层数：未能确定"),
    "surveyed_area": ("Of the surveyed area", "勘察面积中"),
    "area_bare": ("bare substrate", "裸露衬底"),
    "area_not_judged": ("film that could not be judged", "无法判断的薄膜"),
    "shares": (
        "Share of the film by number of layers, with the interval that holds it with 90 %",
        "各层数在薄膜中的份额及其 90 % 区间",
    ),
    "mean_share": ("All spots together: mean share", "全部测量点合计：平均份额"),
    "undetermined": ("Number of layers: undetermined", "层数：未能确定"),
    "credible": ("Layer counts that together reach 90 %: {set}", "合计达到 90 % 的层数：{set}"),
    "distance": ("A1g − E2g separation", "A1g − E2g 峰间距"),
    "spots_agree": ("Spots that agree", "一致的测量点"),
    "film": ("The film", "薄膜"),
    "grown": ("During growth (mean ± sd)", "生长期间（均值 ± 标准差）"),
    "leak_rate": ("Leak rate", "漏率"),
    "purged": ("Purged", "吹扫"),
    "purged_of": ("{count} tube volumes against {gas}", "针对 {gas} 吹扫 {count} 倍管体积"),
    "optics_set": ("Set for the spectra", "光谱测量设定"),
    "exposure_raman": ("Exposure, Raman", "拉曼曝光"),
    "exposure_pl": ("Exposure, photoluminescence", "光致发光曝光"),
    "objective": ("Objective", "物镜"),
    "grating": ("Grating", "光栅"),
    "spectrum_silicon": ("Silicon at the clearest spot", "最清晰测量点的硅峰"),
    "spectrum_pl": ("Photoluminescence at the same spot", "同一点的光致发光"),
    "map": ("Map of the layer count", "层数分布图"),
    "map_key": (
        "Number: most likely layers at the spot; below it the A1g − E2g separation ± 1σ, cm⁻¹. "
        "? : could not be judged.",
        "数字：该点最可能的层数；其下为 A1g − E2g 峰间距 ± 1σ，cm⁻¹。?：无法判断。",
    ),
    "covered": (
        "Film was found at {film} of {places} surveyed places; {spots} of them were measured.",
        "在 {places} 个勘察位置中的 {film} 处发现薄膜；测量了其中 {spots} 处。",
    ),
    "x_axis_um": ("x, µm", "x，µm"),
    "y_axis_um": ("y, µm", "y，µm"),
    "spot": ("Spot", "测量点"),
    "layers": ("Layers", "层数"),
    "fit": ("Fit of the clearest spot", "最清晰测量点的拟合"),
    "fit_key": (
        "Points: counts, dark taken off, axis set by silicon. Line: two Lorentz lines at the "
        "recorded positions and widths; heights and straight background by least squares. Below: "
        "residuals in units of the counting noise.",
        "点：扣除暗计数，横轴以硅峰校准。线：按记录的峰位与峰宽绘制的两条洛伦兹线，峰高与线性本底"
        "由最小二乘得到。下图：以计数噪声为单位的残差。",
    ),
    "no_fit": (
        "The spectra are missing or do not fit their checksum: no fit can be drawn.",
        "光谱缺失或与校验和不符：无法绘制拟合。",
    ),
    "chi2": ("reduced χ² {value}", "约化 χ² {value}"),
    "evidence": ("Evidence", "证据"),
    "term": ("Term", "证据项"),
    "value": ("Measured", "测量值"),
    "log_likelihood": ("Log-likelihood of 1 to 6 layers", "1 至 6 层的对数似然"),
    "systematic": ("Systematic error", "系统误差"),
    "evidence_key": (
        "Each row says what the median over the spots of the predominant class is worth by itself; "
        "6 means six or more. What is common to all spots is integrated out, so spots do not "
        "multiply. Quality {quality} multiplies the confidence.",
        "每一行为主要层数各测量点的中位数单独所提供的证据；6 表示六层或更多。"
        "各点共有的因素已积分消去，故测量点不相乘。质量因子 {quality} 乘以置信度。",
    ),
    "spectra": ("Spectra of the clearest spots", "最清晰测量点的光谱"),
    "spectrum_raman": ("Lines of the film", "薄膜谱线"),
    "spectrum_silicon_two": ("Silicon", "硅峰"),
    "spectrum_pl_two": ("Photoluminescence", "光致发光"),
    "counts_a_second": ("counts per second", "每秒计数"),
    "spectra_key": (
        "Dark counts taken off, divided by the exposure; Raman axes set by silicon.",
        "已扣除暗计数并除以曝光时间；拉曼横轴以硅峰校准。",
    ),
    "no_film_drawn": ("This run has no film to show.", "本次运行没有可显示的薄膜。"),
}
