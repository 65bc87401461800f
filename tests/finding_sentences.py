"""Sentences written anew with the facts of papers: which of them a reader lists as findings.

Each row: the title above it, the sentence, and whether it states an outcome of the work or a
condition under which that was got (``True``), or something else: what others did, a guess, a plan, a
purpose, a pointer to a figure. Sentences are ours; facts are of the papers named.
"""

from typing import Final

__all__ = ["PAPERS"]

Row = tuple[str, str, bool]

# ruff: noqa: E501 - a sentence a line
PAPERS: Final[dict[str, tuple[Row, ...]]] = {
    "10.1021/nn1003937": (  # lattice vibrations of thin MoS2
        (
            "Results",
            "The in-plane mode softens while the out-of-plane mode stiffens with each added layer.",
            True,
        ),
        (
            "Results",
            "The two Raman lines of one layer stand 19 cm-1 apart, and those of bulk 25 cm-1.",
            True,
        ),
        (
            "Discussion",
            "The opposite shifts are attributed to Coulomb screening between neighbouring layers.",
            True,
        ),
        (
            "Introduction",
            "Raman spectroscopy counts the layers of graphene quickly and without damage.",
            False,
        ),
        (
            "Methods",
            "Flakes were peeled from a natural crystal onto silicon with 285 nm of oxide.",
            True,
        ),
        ("Results", "Figure 2 plots both line positions against the number of layers.", False),
    ),
    "10.1103/PhysRevLett.105.136805": (  # a direct gap in one layer
        (
            "Abstract",
            "The luminescence quantum yield of one layer exceeds that of bulk by more than 1000 times.",
            True,
        ),
        (
            "Results",
            "The gap changes from indirect to direct when the crystal is thinned to one layer.",
            True,
        ),
        ("Results", "Emission of suspended single layers peaks at 1.90 eV.", True),
        (
            "Introduction",
            "Layered dichalcogenides have been studied for more than 50 years.",
            False,
        ),
        ("Discussion", "The remaining emission of thicker samples may come from defects.", False),
        ("Outlook", "Such films will be useful for detectors and solar cells.", False),
    ),
    "10.1038/nnano.2010.279": (  # single-layer transistors
        (
            "Abstract",
            "Transistors of a single layer reach an on/off ratio of 100 000 000 at room temperature.",
            True,
        ),
        (
            "Results",
            "A top gate of hafnium oxide improves the mobility strongly compared with bare devices.",
            True,
        ),
        ("Methods", "The dielectric was deposited at 200 °C and is 30 nm thick.", True),
        ("Introduction", "Graphene has no band gap, which limits its use in logic.", False),
        (
            "Discussion",
            "Screening of charged impurities could explain the gain in mobility.",
            False,
        ),
        ("Results", "The contacts behave ohmically over the whole range of voltages.", True),
    ),
    "10.1021/acs.nanolett.6b02615": (  # biaxial strain over sealed cavities
        ("Abstract", "Biaxial strain lowers the optical gap by 99 meV for each percent.", True),
        ("Results", "The E line moves three times as fast with strain as the A line.", True),
        ("Results", "Strains up to 5.6 % were reached before the membranes slid.", True),
        (
            "Introduction",
            "Strain has been used in silicon electronics to raise mobilities [4,5].",
            False,
        ),
        ("Methods", "Membranes were bulged by a pressure difference of up to 0.4 MPa.", True),
        ("Discussion", "Further studies should clarify how membranes delaminate.", False),
    ),
    "10.1021/nl4014748": (  # uniaxial strain
        (
            "Abstract",
            "The gap of one layer falls by 45 meV for each percent of uniaxial strain.",
            True,
        ),
        (
            "Results",
            "Luminescence weakens as strain increases, since the gap becomes indirect.",
            True,
        ),
        ("Results", "The degenerate Raman line splits into two under uniaxial strain.", True),
        ("Introduction", "How far can a single layer be stretched before its gap closes?", False),
        (
            "Methods",
            "Flakes were clamped to a polycarbonate beam that was bent in four points.",
            True,
        ),
        (
            "Introduction",
            "Theory predicts that strain of 10 % would make the material metallic.",
            False,
        ),
    ),
    "10.1038/nmat3633": (  # grains and their boundaries
        (
            "Abstract",
            "Mirror twin boundaries raise the emission, whereas tilt boundaries quench it.",
            True,
        ),
        ("Results", "Single crystals of up to 120 µm in size were grown.", True),
        ("Results", "Cleaner substrates lead to fewer nuclei and larger crystals.", True),
        (
            "Introduction",
            "Polycrystalline films contain grain boundaries that scatter carriers.",
            False,
        ),
        ("Methods", "Growth took place at 700 °C for 5 min in flowing nitrogen.", True),
        ("Results", "An image of a triangular island is shown in Fig. 1.", False),
    ),
    "10.1103/PhysRevB.85.161403": (  # doping softens the out-of-plane mode
        (
            "Abstract",
            "The out-of-plane mode softens by 4 cm-1 at an electron density of 1.8 × 10^13 cm-2.",
            True,
        ),
        ("Results", "The in-plane mode is insensitive to doping.", True),
        (
            "Discussion",
            "The difference arises from the stronger coupling of the out-of-plane mode to electrons.",
            True,
        ),
        (
            "Introduction",
            "Electron-phonon coupling governs transport in many semiconductors.",
            False,
        ),
        ("Outlook", "It remains to be seen whether holes act in the same way.", False),
        ("Methods", "Spectra were taken with 514.5 nm at a power of 0.15 mW.", True),
    ),
    "10.1103/PhysRevB.91.195411": (  # Raman lines of disorder
        (
            "Abstract",
            "Ion bombardment activates a line near 227 cm-1 whose height grows with the density of defects.",
            True,
        ),
        ("Results", "The first-order lines broaden as the distance between defects shrinks.", True),
        (
            "Results",
            "The ratio of both heights scales with the inverse square of the distance between defects.",
            True,
        ),
        (
            "Introduction",
            "In graphene the D band is used to quantify disorder (Cançado et al.).",
            False,
        ),
        ("Methods", "Samples were bombarded with manganese ions of 25 keV.", True),
        ("Introduction", "The aim of this paper is a simple measure of disorder.", False),
    ),
    "10.1038/nature14417": (  # wafer-scale films
        (
            "Abstract",
            "Films on four-inch wafers show mobilities of 30 cm2 V-1 s-1 at room temperature.",
            True,
        ),
        ("Results", "Of 8100 transistors 99 % worked.", True),
        (
            "Results",
            "Grains merge laterally because the vapour pressure of each precursor is controlled.",
            True,
        ),
        ("Methods", "A growth takes 26 h at 550 °C in a hot-wall reactor.", True),
        ("Discussion", "The process will be extended to other dichalcogenides.", False),
        ("Introduction", "Uniform films over whole wafers are needed for circuits.", False),
    ),
    "10.1126/science.aad2114": (  # a superacid mends defects
        (
            "Abstract",
            "A treatment with an organic superacid raises the quantum yield from 1 % to more than 95 %.",
            True,
        ),
        ("Results", "Treated layers show a lifetime of 10.8 ns at low excitation.", True),
        ("Results", "The shape of the emission spectrum stays unchanged by the treatment.", True),
        ("Discussion", "The gain is probably due to the repair of sulfur vacancies.", False),
        (
            "Introduction",
            "Previous work reported quantum yields below 1 % for single layers.",
            False,
        ),
        ("Methods", "Samples were immersed in a solution of 0.2 mg/ml for 10 min at 100 °C.", True),
    ),
    "10.1002/adma.201104798": (  # growth with aromatic seeds
        (
            "Abstract",
            "Seeds of aromatic molecules promote the lateral growth of single layers.",
            True,
        ),
        ("Results", "Without seeds only particles are found on the substrate.", True),
        (
            "Methods",
            "The substrate was heated to 650 °C at 15 °C/min and kept there for 15 min.",
            True,
        ),
        (
            "Introduction",
            "Exfoliation gives flakes of a few micrometres only, as reported in the literature.",
            False,
        ),
        ("Discussion", "One might expect the same effect for selenides.", False),
        ("Results", "We now turn to the electrical measurements.", False),
    ),
    "10.1021/cm5025662": (  # the shape of islands
        (
            "Abstract",
            "The shape of the islands evolves from triangles to hexagons as the ratio of molybdenum to sulfur falls.",
            True,
        ),
        (
            "Results",
            "Edges terminated by sulfur grow more slowly than those terminated by molybdenum.",
            True,
        ),
        (
            "Discussion",
            "The local supply of precursors therefore determines which edge survives.",
            True,
        ),
        (
            "Introduction",
            "Triangles are the usual shape of islands grown from powders [12].",
            False,
        ),
        ("Methods", "Sulfur was evaporated at 200 °C upstream of the boat.", True),
        ("Outlook", "We plan to model the supply in a future study.", False),
    ),
}
