"""Constants of the estimators of tables, in one place: unit, meaning, and where each comes from.

    theorem        it follows from the source that is named
    noise          so many deviations of a known noise
    chosen on      the tables that figures were measured on, and where they stand
    not tuned      no measurement of other values is on record

They are read when they are used, so that an experiment with another value reaches every module:
`with unittest.mock.patch.dict(vars(CHAIN), slack=1.0)`. Not here is what a proof rests on, which stands beside its
statistic; what decides speed or memory alone; and what keeps floating-point numbers apart. The page `docs/constants.md`
is this file as tables, which a test holds.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SizeConstants:
    """How finely a table is measured and modelled: by public facts and planned noise alone."""

    most_classes: int = 1_000  # classes of a target at most | not tuned
    level_groups: int = 64  # levels of a column with an indicator each, by default | chosen on adult; decision 3
    fewest_cells: int = 32  # cells of a number at least | not tuned
    most_cells: int = 256  # cells of a number at most | not tuned
    most_values: int = 1 << 20  # of a column whose single values are counted | not tuned: memory and time of noise
    all_values: int = 1 << 22  # of all columns of a table | not tuned: memory and time of noise
    cells_without_noise: int = 512  # cells of a number | not tuned
    public_runs: int = 32  # runs of a number's cells, as even as can be, counted by areas | not tuned
    counted_cells: int = 37  # the same at most | theorem: public runs, cuts beside 0 and at bounds, and missing
    bound_share: float = 0.05  # part of the rows that a bound's own cell must show | not tuned; without: decision 20
    most_runs: int = 48  # runs of cells in which a number is drawn, about the most | not tuned
    runs_without_noise: int = 96  # the same | not tuned
    run_spread: float = 0.006  # variances of the column: largest mass times squared span of a run | not tuned
    # noise of an entry of the moments, waves of a number's rank up to there, and what part of a squared weight the next
    # one has | chosen on magic, housing, telco, small tables; decision 96
    waves: tuple[tuple[float, int, float], ...] = (
        (0.001, 22, 0.88), (0.006, 16, 0.8), (0.025, 8, 0.75), (0.04, 3, 0.75), (float("inf"), 1, 0.75),
    )  # fmt: skip
    faint: float = 1e-4  # noise of an entry below which settings are those without noise | not tuned
    entry_scale: float = 1.5  # about the noise of an entry, in that of a column's squared norm | not tuned
    target_weight: float = 2.0  # columns that a column to predict counts for at least | not tuned
    target_noise: float = 0.1  # of an entry, from which it counts for as many as there are | not tuned; decision 96
    target_part: float = 0.6  # of the columns, that one of many labels counts for at most | not tuned
    # part of the squared budget for margins: least, most, per tenfold noise of an entry, and from which on | chosen on
    # tables of 450 to 1,000 rows; decision 96
    margins: tuple[float, float, float, float] = (0.3, 0.5, 0.5, 0.01)
    linked_margins: float = 0.5  # the same of linked rows, whatever the noise | chosen on four laws; decision 108
    weight_column: float = 0.5  # columns that the column of rows' weights counts for | not tuned
    # mean weight in the bound, guessed for settings where no total is public | not tuned; decision 41
    mean_weight: float = 0.25
    # largest bound of weights that a forecast takes to average 1 | not tuned; decision 41
    bound_of_one: float = 100.0
    least_weight: float = 2.0**-10  # a class's sum of weights at least, in the bound | not tuned
    # deviations by which others' counts may add up to other than declared | noise: 5
    sum_deviations: float = 5.0
    sum_part: float = 0.01  # part of the rows, by which they may beside that | not tuned
    uncounted: float = 1e9  # noise deviations, of counts that there are not | not tuned: for infinity
    seed: int = 0  # of the stream of simulated rows | not tuned: any is as good


@dataclass(frozen=True)
class CurveConstants:
    """A column's shares from noisy counts: a smooth curve, and spikes."""

    stands_out: float = 3.5  # deviations from which a cell is a spike | noise: one in seven columns of 300 empty cells
    stands_alone: float = 5.0  # the same of cells below the noise | noise: 5 deviations; decision 34
    below_noise: float = 3.0  # noise deviations of the curve, below which cells are lost in noise | not tuned
    false: float = 0.005  # false spikes among cells of a column that are runs by themselves | not tuned
    spike_rounds: int = 3  # times that spikes are set apart | not tuned
    suspect: float = 5.0  # deviations out of the median beside, set apart at first | not tuned; without: decision 20
    beside: int = 4  # cells on either side, of that median | not tuned
    fewest_ordered: int = 4  # cells with a curve | not tuned
    many_levels: int = 30  # of a label, from which all tell how frequent levels are | not tuned; without: decision 20
    stiffness: tuple[float, ...] = tuple(8.0**p for p in range(8, -3, -1))  # weights of second differences | not tuned
    rounds: int = 4  # steps of Gauss and Newton for each stiffness | not tuned
    first_rounds: int = 16  # for the first stiffness | not tuned
    largest_step: float = 2.0  # of a logarithm of a density | not tuned
    halvings: int = 8  # of a step that would make the curve less likely | not tuned
    converged: float = 1e-4  # the same, of the last step | not tuned
    tie: float = 1.0  # deviations by which a softer curve has to be better | noise: of a sum of squares of noise
    hopeless: float = 40.0  # estimated risk above the least at which no softer curve is tried | not tuned
    window: int = 8  # part of the cells that the start averages over, inverse | not tuned
    window_floor: float = 0.05  # noise deviations of a cell, below which the start does not fall | not tuned
    missed: float = 6.0  # noise deviations of a run, from which its cells are as counted | noise: 6 deviations


@dataclass(frozen=True)
class AtomConstants:
    """Which single values are cells of their own (`atoms.py`)."""

    false: float = 0.02  # false atoms of a column without any, on average | not tuned
    false_endings: float = 0.01  # the same of endings, each of which moves more rows | not tuned
    usual_values: int = 10_000  # of a kind, by which a forecast says what stands out | not tuned
    few_values: int = 1_000  # below which the last digit alone is an ending | not tuned
    most_digits: int = 19  # of a value, as it is told apart by | theorem: those of an int64
    most_zeros: int = 5  # at the end of a value, behind the digits of an ending | not tuned
    beside: int = 4  # cells on either side that a cell stands out of | not tuned
    alone: float = 4.0  # times as much as these hold: of a cell that holds most of what lies around it | not tuned
    false_alone: float = 0.3  # false atoms of such a cell | chosen on made-up codes; decision 99
    rounds: int = 8  # in which values that stand out are found | not tuned
    most: int = 512  # atoms of a column | not tuned: memory and time of what follows
    uneven: float = 0.3  # of a cell's rest, as cells beside say it | chosen on twelve made-up columns; decision 99
    least_rows: float = 0.01  # of a cell, in its logarithm | not tuned: keeps it finite
    ease: float = 1.0  # deviations by which less stands out, of what may be an atom | not tuned
    least_factor: float = 1e-4  # of an ending | not tuned
    most_factor: float = 1e3  # the same | not tuned: 1 January alone is 365


@dataclass(frozen=True)
class TailConstants:
    """The ends of a column: where counts are lost in noise, and where they say that nothing lies beyond."""

    seen: float = 3.0  # noise deviations by which an end stands out | noise: 3 deviations
    sure_end: float = 6.0  # the same of an end that is not taken for a normal law's | noise: twice as many
    fewest: int = 16  # cells at least, of a column with tails | not tuned
    height: float = 0.1  # of the highest cell: what is no lower at its end has no tail | not tuned
    mass: float = 0.1  # part of the rows that is fitted | chosen on benchmarks/tails.py (a fifth: worse); decision 34
    above_noise: float = 6.0  # deviations that it holds | chosen on benchmarks/tails.py (12, 24: worse); decision 34
    least_cells: int = 3  # fitted beyond what is replaced | not tuned
    cut_part: int = 20  # part of the cells over which a cut tail's fall is read, inverse | not tuned
    flattest: float = 0.5  # logarithm of the fall in such a part | not tuned
    steepest: float = 2.0  # the same | not tuned
    innermost: int = 6  # cells that say how high a law begins | not tuned
    height_range: float = 3.0  # logarithm by which a law may begin higher or lower | not tuned
    first_bend: float = 0.1  # of a law, where its fit starts | not tuned
    most_rates: tuple[float, float] = (1e3, 1e5)  # slope and bend of a law | not tuned
    evaluations: int = 60  # of a law's fit | not tuned
    largest_change: float = 2.0  # factor by which a law is brought to the curve | not tuned
    # mean and deviation of slope and of bend before counts are seen, and least slope: of laws in the value | not tuned:
    # weak priors; decision 34
    linear: tuple[tuple[float, float], tuple[float, float], float] = ((1.5, 1.0), (1.0, 1.0), 0.0)
    # the same of laws in the logarithm of a distance | not tuned: weak priors; decision 34
    power: tuple[tuple[float, float], tuple[float, float], float] = ((3.0, 2.0), (0.0, 3.0), 1.2)
    # the same of laws toward 0 | not tuned: weak priors; decision 34
    toward_zero: tuple[tuple[float, float], tuple[float, float], float] = ((1.5, 1.5), (0.0, 3.0), 0.3)
    edge_cells: int = 8  # on the curve of a column that may be cut off | not tuned
    edge_mass: float = 0.25  # of the curve's rows that are looked at from a bound | not tuned
    contradicted: float = 2.5  # deviations from which counts are taken, not the curve | noise: 2.5; decision 60
    sure: float = 4.0  # deviations from which a run holds records | noise: 4; decision 67
    places: float = 3.0  # where an end may be: divides its likelihood | not tuned; decision 60


@dataclass(frozen=True)
class VectorConstants:
    """Features of cells, and the norm that records' vectors are clipped to."""

    hermite_terms: int = 40  # of a Gaussian copula's moments | not tuned: of Mehler's series
    least_length: float = 1e-7  # squared, of a number's feature, in that of the longest | not tuned
    least_known: float = 0.01  # share of rows with a label that features are scaled by | not tuned
    least_share: float = 1e-9  # of a run that is drawn | not tuned
    least_mass: float = 1e-7  # of a run | not tuned
    least_weight: float = 1e-4  # squared length of an indicator | not tuned
    new: float = 1e-4  # of a feature's length that earlier ones do not say, at least | not tuned
    most_edge: float = 8.0  # normal deviations, of an edge between runs | not tuned
    least_norm: float = 0.05  # of a table of constants | not tuned


@dataclass(frozen=True)
class EvidenceConstants:
    """What noisy moments of features say."""

    rows: int = 40_000  # of a law, by which what clipping takes off is seen | not tuned
    seed: int = 1  # of these rows | not tuned: any is as good
    least_clipped: float = 0.5  # of a product, that clipping leaves at least | not tuned
    least_squares: float = 0.3  # of a leading feature's square, the same | not tuned
    correlations: int = 48  # of a copula, that are tried on either side of 0 | not tuned
    most_score: float = 3.2  # inverse hyperbolic tangent of the largest | not tuned
    shared_rounds: int = 8  # of completing what columns share by what they say of themselves | not tuned; decision 80


@dataclass(frozen=True)
class LeadingConstants:
    """What is told apart by class of a column to predict."""

    part: float = 0.1  # of the second release's squared budget | chosen on telco, magic, california; decision 96
    parts: int = 4  # of a number to predict | not tuned
    most_classes: int = 6  # of labels | not tuned
    length: float = 2.5  # squared clip norm, in the mean squared length | not tuned: clipping is rare


@dataclass(frozen=True)
class DescentConstants:
    """How a mixture's logits go down, and in what they move; how a column's softmax is solved."""

    first: float = 0.9  # of Adam's running means of slopes | theorem: Kingma and Ba 2015
    second: float = 0.99  # the same of their squares | not tuned
    rate: float = 0.05  # of a step at first, in logits | not tuned
    spread: float = 0.5  # standard deviation of logits at the start | not tuned
    annealed: float = 0.7  # part of the steps from which on they fall | not tuned
    last_step: float = 0.03  # to that part | not tuned
    renewals: int = 3  # of what is fitted to, by what clipping takes off the law | chosen on rare levels; decision 96
    raked: int = 10  # rounds, of the law to the columns' shares | not tuned
    finest: int = 5  # scales of bumps | chosen on magic: waves of sixteen orders say nothing of finer ones; decision 96
    width: float = 0.6  # of a bump, in the distance of two | not tuned
    smoother: float = 1.5  # power of two by which a squared bump falls from one scale to the next | not tuned
    least_bump: float = 1e-3  # that a bump varies by | not tuned
    solver_steps: int = 60  # of a softmax | chosen on the tables of decision 96 (300: level); decision 96
    more_solver_steps: int = 150  # the same, of little noise or linked rows | chosen on a made-up law of visits
    solver_slope: float = 2e-4  # at which they end | not tuned
    solver_fall: float = 1e-7  # of the value, in itself, the same | not tuned
    solver_kept: int = 10  # steps that a curvature is read off | not tuned


@dataclass(frozen=True)
class OffsetConstants:
    """Where numbers lie, as second moments say it."""

    weight: float = 0.5  # squared length of the entry that all rows have, at least | not tuned
    share: float = 0.25  # of a column's length in that of the entry, where columns are many | not tuned
    noise: float = 0.02  # noise of an entry from which columns are many | not tuned
    least_left: float = 0.25  # of the records, that clipping leaves at least | not tuned
    most: float = 1.5  # of a column's offset, in its deviations | not tuned
    most_tilt: float = 10.0  # of a column's shares, logarithms a deviation | not tuned


@dataclass(frozen=True)
class ChainConstants:
    """The law that is fitted to moments, and the chain of columns that has its moments."""

    components: int = 200  # of the mixture | chosen on the tables of decision 96
    more_components: int = 400  # the same, of little noise | chosen on adult, telco at ε = 10; decision 96
    fewest_components: int = 40  # the same, of few features | not tuned
    of_feature: int = 4  # components for each feature at most | not tuned
    most_work: float = 2e8  # components times squared features at most | chosen on a made-up table of 200 columns
    steps: int = 800  # of its descent | chosen on the tables of decision 96 (400: worse)
    fewest_steps: int = 60  # the same, where few rows are simulated | not tuned
    independence: float = 20.0  # nats that a component costs for each nat it says | chosen on the same; decision 96
    close: float = 0.001  # noise of an entry, up to which it is little | chosen on adult, telco at ε = 10; decision 96
    # noise of an entry, from which moments with a target weigh more | chosen on telco, housing, ordered; decision 96
    emphasised: float = 0.001
    most_emphasis: float = 16.0  # than others | chosen on the same
    near: float = 1.0  # the same, of linked rows | chosen on a made-up law of visits
    near_ridge: float = 3e-3  # of a softmax's weights, likewise | chosen on four made-up laws; decision 108
    less_independence: float = 5.0  # the same, of little noise | chosen on adult, telco at ε = 10; decision 96
    seed: int = 0  # of its start | not tuned: any is as good
    least_variance: float = 1e-10  # of what is fitted | not tuned: for 0
    simulated: int = 12_000  # rows | chosen on the tables of decision 96
    fewest_rows: int = 20  # that are simulated | not tuned
    ridge: float = 1e-3  # of a softmax's weights | chosen on the same; decision 96
    free_weights: float = 300.0  # of a target: one for 40 simulated rows | chosen on wide; decision 101
    precision: float = 0.5  # of a weight before records are seen, where there is next to no noise | not tuned
    product_ridge: float = 3e-2  # of products' weights | chosen on magic, telco; decision 96; without noise `ridge`
    heard: float = 0.015  # moment, or what others miss of it, from which a feature is heard | not tuned; decision 96
    hearing_ridge: float = 0.05  # added to the moments that features that are heard are predicted by | not tuned
    missed: float = 1e-3  # chance that noise of any moment counts as what a mixture misses | noise: no fit of 1,000
    renewed: float = 0.05  # deviations of noise, by which what clipping takes has to move moments | not tuned
    first_heard: int = 100  # features, the strongest; of others those that they miss | not tuned
    listens: int = 3  # rounds, in which features are found that others miss | not tuned
    # kurtosis of a feature beyond which nothing is drawn given it | chosen on mirrored labels, adult; decision 96
    most_kurtosis: float = 1_000.0
    most_products: int = 400  # of leading features | not tuned
    least_product: float = 1e-5  # squared moment by class that counts | not tuned


@dataclass(frozen=True)
class LinkConstants:
    """How rows of units are counted, and how the context that they are drawn given is drawn."""

    rooms: int = 40  # numbers of rows that may count whole, of which the best is taken | not tuned
    most_pairs: int = 1_024  # cells of a label and the one before that are counted together | not tuned
    rows: int = 40_000  # that units are drawn for | not tuned; decision 90
    fewest_units: int = 2_048  # that are drawn | not tuned
    most_units: int = 20_000  # that are drawn | not tuned
    seed: int = 31  # of the units that are drawn | not tuned


@dataclass(frozen=True)
class PriorConstants:
    """Empirical Bayes by the known noise: laws that are read off all blocks, or all counts, together."""

    scales: tuple[float, ...] = (0.0, *(2.0**p for p in range(-16, 5)))  # variances of a block's moments | not tuned
    rounds: int = 200  # of expectation-maximisation | not tuned
    converged: float = 1e-6  # change of a scale's weight, of the last round | not tuned
    blocks: float = 0.2  # spread over the scales, so that few blocks decide little | not tuned
    count_places: int = 60  # of the law of counts, beside those that were seen | not tuned
    count_reach: tuple[float, float] = (20, 1.05)  # least place in the noise, inverse; most in the counts | not tuned
    counts_seen: int = 500  # quantiles that stand for more counts | not tuned
    flat_share: float = 0.02  # of the uniform law in that of counts | not tuned
    # weight of columns' own differences, below which they are noise for the most part | chosen on ds1_10 (.41: worse),
    # seizure
    mostly_noise: float = 0.25
    unlike: float = 5.0  # deviations of a sum of squares of noise, beyond twice the middle one | noise: 5 deviations


@dataclass(frozen=True)
class PriorReleaseConstants:
    """What an earlier release says of the next one."""

    rows: int = 1 << 17  # of its model | not tuned
    most_cells: int = 1 << 24  # of these rows in all columns: of more columns, fewer rows | not tuned
    most_runs: int = 4_096  # of all columns, beyond which rows are not tilted: 25 seconds, .8 GB | not tuned
    seed: int = 20_262  # of the stream that draws them | not tuned: any is as good
    tilts: tuple[float, ...] = (0.0, *(4.0**p for p in range(-14, 3)))  # variances of a tilt that are tried | not tuned
    # such a variance, above which the prior is wrong | chosen on adult and a made-up table (.001 right, .25 wrong);
    # decision 76
    most_tilt: float = 0.02
    least_weight: float = 0.05  # of a tilted row, in its own | not tuned
    largest_weight: float = 50.0  # of a raked row, in the mean | not tuned
    rounds: int = 10  # of raking | not tuned
    stands_out: float = 2.0  # deviations by which a run's share may be above what the rows have | noise: 2
    least_variance: float = 0.01  # of a measurement's noise, which is left of it at least | not tuned


@dataclass(frozen=True)
class DistanceConstants:
    """Whether a distance between two dates says more than the two dates do."""

    # of a copula of two dates: a chain of softmaxes has these without any distance | not tuned
    correlations: tuple[float, ...] = (0.0, 0.2, 0.4, 0.55, 0.7, 0.8, 0.9, -0.25, -0.5, -0.75, -0.9)
    least_excess: float = 0.05  # part of the distances that no copula has where they are | not tuned
    runs: int = 48  # of cells in which the two are compared | not tuned
    drawn: int = 1 << 16  # rows of a copula | not tuned
    seed: int = 73  # of the stream of these rows | not tuned: any is as good


@dataclass(frozen=True)
class SamplingConstants:
    """Rows drawn from a chain."""

    block_rows: int = 16_384  # that share out the unit interval | not tuned
    fewest_raked: int = 64  # rows: of fewer, their own columns would decide the factors | not tuned
    raking_rounds: int = 3  # of a block to its shares | not tuned; without: decision 20
    raking_rows: int = 2  # times the runs: a block of as many is raked by half | not tuned
    largest_ratio: float = 4.0  # of a round of raking | not tuned
    most_rounds: int = 16  # of candidates for given values | not tuned; decision 65
    repeated: float = 0.1  # of rows that may share a candidate | not tuned; decision 65
    pilots: int = 2  # ways to lean, beside not at all | not tuned; decision 65
    pilot_rows: int = 2_048  # by which a lean is measured | not tuned; decision 65
    most_factor: float = 6.0  # logarithm by which candidates lean | not tuned


@dataclass(frozen=True)
class QuestionConstants:
    """How samples are tilted to what named questions measured."""

    simulated: int = 1 << 16  # rows of the chain on which multipliers are fitted | not tuned
    ridge: float = 0.25  # deviations of its noise by which a multiplier of 1 misses a mean | not tuned
    forecast_length: float = 7.0  # squared norm of a score, for each term, in sampling variances | chosen on trial
    forecast_together: float = 0.25  # power of the number of regressions by which that is less | chosen on trial
    forecast_pairs: float = 25.0  # a coefficient's variance by noise of products, in its square | chosen on trial
    cells: int = 512  # cells of a number of which a question's terms are functions | not tuned
    fewest_runs: int = 4  # of a number in a table of many cells | not tuned
    most_cells: int = 1 << 10  # cells of a question's table: answers solve for all of them | not tuned
    steps: int = 200  # of the fit at most | not tuned
    seed: int = 50  # of the stream of simulated rows | not tuned: any is as good
    spread_part: float = 0.1  # of a question's share: how far units differ | not tuned
    pair_spread: float = 0.25  # of a correlation's share: how far its pairs differ | not tuned


@dataclass(frozen=True)
class LevelConstants:
    """When units of linked rows differ by more than their rows."""

    least_alike: float = 0.1  # likeness of rows from which levels and trends are used | not tuned
    alike_of_noise: float = 30.0  # the same for each noise of an entry | chosen on two laws
    most_alike: float = 1.1  # beyond which it is noise | not tuned
    most_of_noise: float = 5.0  # the same for each noise of an entry: a deviation | noise: 12 fits of two laws
    least_told: float = 0.1  # of the spread of rows, what means of alike rows have beyond those of others | not tuned
    simulated: int = 1 << 14  # units whose rows have nothing to do with each other | not tuned
    most_apart: float = 0.15  # of a law, what lines and offsets have elsewhere | chosen on five numbers of made-up laws
    runs: int = 10  # of even shares, in which laws are compared | not tuned
    seed: int = 51  # of the stream of these | not tuned: any is as good


SIZES = SizeConstants()
CURVE = CurveConstants()
ATOMS = AtomConstants()
TAILS = TailConstants()
VECTORS = VectorConstants()
EVIDENCE = EvidenceConstants()
LEADING = LeadingConstants()
DESCENT = DescentConstants()
OFFSETS = OffsetConstants()
CHAIN = ChainConstants()
LINKS = LinkConstants()
PRIORS = PriorConstants()
PRIOR = PriorReleaseConstants()
DISTANCES = DistanceConstants()
SAMPLING = SamplingConstants()
QUESTIONS = QuestionConstants()
LEVELS = LevelConstants()
