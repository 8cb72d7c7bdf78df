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
    few_classes: int = 6  # classes of a target, up to which each has moments of its own | not tuned
    many_classes: int = 32  # the same at most, of more where noise is small | not tuned
    # such noise of an entry times the classes | chosen on made-up laws of 10 and 26 classes, digits; decision 83
    many_classes_noise: float = 0.03
    level_groups: int = 64  # levels of a column with an indicator each, by default | chosen on adult; decision 3
    fewest_cells: int = 32  # cells of a number at least | not tuned
    most_cells: int = 256  # cells of a number at most | not tuned
    cells_without_noise: int = 512  # cells of a number | not tuned
    public_runs: int = 32  # runs of a number's cells, as even as can be, counted by class | not tuned
    counted_cells: int = 37  # the same at most | theorem: public runs, cuts beside 0 and at bounds, and missing
    bound_share: float = 0.05  # part of the rows that a bound's own cell must show | not tuned; without: decision 20
    most_runs: int = 48  # runs of cells in which a number is drawn, about the most | not tuned
    runs_without_noise: int = 96  # the same | not tuned
    run_spread: float = 0.006  # variances of the column: largest mass times squared span of a run | not tuned
    most_orders: int = 14  # polynomials of a number's rank, its score among them | not tuned
    # noise of an entry of the moments, and polynomials up to there | chosen on telco (six: .025 for .01; decision 20),
    # magic and housing (eight to .006; ten: no better); decision 80
    orders: tuple[tuple[float, int], ...] = ((0.001, 14), (0.006, 8), (0.025, 6), (0.04, 3))
    faint: float = 1e-4  # noise of an entry below which settings are those without noise | not tuned
    entry_scale: float = 1.5  # about the noise of an entry, in that of a column's squared norm | not tuned
    class_entry_noise: float = 0.2  # noise of an entry, up to which classes have moments of their own | not tuned
    # noise of an entry, and part of the second release by class up to there | not tuned; without: decision 20
    by_class: tuple[tuple[float, float], ...] = ((0.02, 0.118), (0.2, 0.25))
    # squared length of a class's indicator | chosen on credit, ISOLET; decision 7
    class_weight: float = 0.5
    class_share: float = 0.25  # of a column's length in that of the indicator, where columns are many | not tuned
    many_columns_noise: float = 0.02  # noise of an entry from which columns are many | not tuned
    target_weight: float = 2.0  # columns that a number to predict counts for | not tuned
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
    sure: float = 4.0  # deviations from which a cell holds records | noise: 4; decision 67
    places: float = 3.0  # where an end may be: divides its likelihood | not tuned; decision 60


@dataclass(frozen=True)
class VectorConstants:
    """Features of cells, and the norm that records' vectors are clipped to."""

    hermite_terms: int = 40  # of a Gaussian copula's moments | not tuned: of Mehler's series
    # squared length of a score and of each polynomial | chosen on housing, magic, telco (.6 of a score: worse);
    # decision 80
    order_weights: tuple[float, ...] = (0.45, 0.2, 0.15, 0.1, 0.08, 0.07, *[0.05] * 8)
    heavy: float = 0.1  # part of the rows from which a single number has an indicator | not tuned
    most_heavy: int = 2  # such indicators of a column | not tuned
    heavy_weight: float = 0.5  # of such an indicator, beside that of a label | not tuned
    least_mass: float = 1e-7  # of a run | not tuned
    least_weight: float = 1e-4  # squared length of an indicator | not tuned
    new: float = 1e-4  # of a feature's length that earlier ones do not say, at least | not tuned
    most_score: float = 6.0  # normal deviations, of a run's score | not tuned
    most_edge: float = 8.0  # normal deviations, of an edge between runs | not tuned
    least_norm: float = 0.05  # of a table of constants | not tuned
    norm_rows: int = 4_096  # simulated for a norm | not tuned
    norm_seed: int = 7  # of these rows | not tuned: any is as good
    together: float = 0.3  # correlation of their columns' scores | not tuned
    norms: tuple[float, float, int] = (0.7, 40.0, 60)  # mean squares: least and most tried, and how many | not tuned
    # error of a moment for each part of the squares that is clipped off, beside its noise | chosen on housing, magic,
    # telco (.1: worse; .03: level); decision 80
    clipped: float = 0.05


@dataclass(frozen=True)
class PairConstants:
    """Second moments of features from a noisy release."""

    least_variance: float = 0.05  # of an entry's noise, which is left of it at least | not tuned
    most_correlation: float = 0.995  # of two scores | not tuned
    least_clipped: float = 0.5  # of a product, that clipping leaves at least | not tuned
    # square of a feature's moments at most, in its weight | chosen on made-up factor tables of rare levels; decision 69
    most_square: float = 4.0
    # variance of a moment that was not measured | not tuned: features of variance 1 have moments of at most 1
    unknown: float = 10.0
    unmeasured: float = 1e6  # variance of a mean that was not measured | not tuned: for infinity
    shared_rounds: int = 8  # of completing what columns share by what they say of themselves | not tuned; decision 80
    most_shared: float = 0.95  # of a moment's noise, in what columns share | not tuned
    strong: float = 0.4  # correlation from which a pair's moments are made those of a law | not tuned
    most_strong: int = 2_000  # such pairs, of some hundredths of a second each | not tuned
    pair_rows: int = 1_024  # of such a law | not tuned
    pair_slack: float = 1.0  # noise deviations of each block that are left to the copula | not tuned
    pair_tolerance: float = 1e-6  # nats | not tuned
    most_copied: float = 0.995  # chance that a label is kept | not tuned
    copied: float = 2.0  # deviations of that chance, from which labels are kept | noise: 2; decision 39
    copy_rounds: int = 30  # of raking a law of two labels | not tuned


@dataclass(frozen=True)
class PairTableConstants:
    """Whole tables of pairs of columns."""

    # of the largest table, from which tables are counted | chosen on deciles, flights, Adult, ma2019 against telco and
    # two small ones; decision 91
    least_cells: int = 50
    # such cells times the noise of a share by moments | chosen on the same, Adult and deciles at ε = 10; decision 91
    least_noise: float = 0.05
    # levels of a label from which its table with a number counts for that | not tuned: telco's few have none
    least_levels: int = 10
    runs: int = 24  # of a number, about, before anything is released | not tuned
    most: int = 12  # tables | chosen on deciles, Adult, ma2019 (6, 24); decision 91
    most_cells: int = 1 << 16  # of a table | not tuned: half a MiB
    # variance of a count's error by moments at least, in the mean one | chosen on the same and two made up; decision 91
    least_variance: float = 0.1
    # variances of counts' errors, in what moments say of them | not tuned: an eighth to four times the deviation
    factors: tuple[float, ...] = tuple(2.0**k for k in range(-6, 5))
    # counts, in those of columns that do not go together, least but for 0 and most | not tuned
    multiples: tuple[float, float] = (0.02, 2000.0)
    places: int = 60  # of such multiples | not tuned
    rounds: int = 60  # of likelihood | not tuned
    least_left: float = 1e-3  # variance of a score given a label | not tuned: for 0
    # of a count that a fit may miss, in its Poisson variance | chosen on flights, tariffs (.05, 1); decision 92
    sampled: float = 1.0
    least_share: float = 1e-6  # of a cell, in that of columns that do not go together | not tuned: for 0


@dataclass(frozen=True)
class ClassConstants:
    """Every column's law in every class."""

    least_count: float = 0.25  # of a class's clipped records, in its count | not tuned
    most_offset: float = 1.5  # of a column's score, in its deviations | not tuned
    least_left: float = 0.01  # of a mean's noise, when all rows are of one class | not tuned
    along: tuple[float, ...] = (0.0, *(2.0**p for p in range(-8, 3)))  # variances of shifts along columns | not tuned
    apart: tuple[float, ...] = tuple(4.0**p for p in range(-8, 1))  # of shifts of each column by itself | not tuned
    locations: tuple[float, float, int] = (3.5, 3.0, 57)  # farthest, how dense about 0, and how many | not tuned
    scales: tuple[float, float, int] = (0.2, 3.0, 17)  # of a class's scores: least, most, and how many | not tuned
    prior_rounds: int = 30  # of expectation-maximisation | not tuned
    flat_share: float = 0.01  # of the uniform law in the prior | not tuned
    least_noise: float = 1.0  # rows, of a count, that a posterior is taken with | not tuned
    least_mean_variance: float = 1e-6  # of a feature's mean, the same | not tuned
    deviations: tuple[float, ...] = (0.0, *(4.0**p for p in range(-8, 2)))  # variances of what is left | not tuned
    rough: float = 0.1  # of what features cannot say, beside what they can | not tuned
    decay: float = 0.7  # of a feature's prior variance, from one to the next | not tuned
    least_decay: float = 0.05  # the same, of the last ones | not tuned
    raking_rounds: int = 30  # of tables to the pooled law | not tuned
    jitter: float = 1e-9  # of the mean prior variance | not tuned
    least_part: float = 1e-3  # of what a class was expected to have | not tuned


@dataclass(frozen=True)
class ChainConstants:
    """What a column is predicted by, and the rows that are simulated."""

    related: float = 0.01  # noise variances, from which a squared entry says something | not tuned
    class_related: float = 4.0  # the same of a class alone | noise: 2 deviations
    linked: float = 0.02  # squared moment that makes one feature matter where the other does | not tuned
    most_related: int = 300  # features that a column is predicted by | not tuned
    most_together: int = 100  # the same, where all columns share what is seen | not tuned
    most_tilt: float = 10.0  # of a column's shares by its score, logarithms a deviation | not tuned
    fewest_rows: int = 20  # of a class, simulated | not tuned
    class_rows: int = 200  # times the classes, simulated at least | not tuned
    simulated: int = 20_000  # rows | chosen on adult (10,000: worse), telco (40,000: no better); decision 20
    simulated_without_noise: int = 40_000  # rows | not tuned
    simulated_cells: int = 600_000  # rows times columns, of more than 30 columns | not tuned
    fewest_simulated: int = 8_000  # rows of many columns | not tuned
    # nats: less is not worth a step | chosen on the tables of decision 60, of 86 (1e-5, 3e-4 alike); decisions 60, 86
    tolerance: float = 3e-5
    tolerance_without_noise: float = 1e-6  # nats, the same | not tuned; decision 63
    slack: float = 0.5  # deviations of a block that are left | chosen on telco, magic, two made up; decisions 20, 63
    least_variance: float = 0.3  # of a moment's sampling error 1/n, let be | chosen on adult, ma2019; decision 20
    widths: tuple[float, ...] = (10.0, 100.0, 1000.0)  # times the variances, until a law has the moments | not tuned
    unsolved: float = 0.01  # nats that a next step would gain, from which moments are taken for refuted | not tuned


@dataclass(frozen=True)
class LinkConstants:
    """How units of a database are fitted to the context that they are drawn given."""

    rows: int = 40_000  # that units are drawn for | not tuned; decision 90
    fewest_units: int = 2_048  # that are drawn | not tuned
    most_units: int = 20_000  # that are drawn | not tuned
    seed: int = 31  # of the units that are drawn | not tuned


@dataclass(frozen=True)
class FitConstants:
    """How one column's softmax is solved."""

    raking_rounds: int = 4  # of a fit's tilts to its shares | not tuned
    raked: float = 1e-5  # distance of shares at which raking ends | not tuned
    largest_raking: float = 3.0  # logarithm of a round's factor | not tuned
    steps: int = 12  # with the same curvature | not tuned; decision 63
    most_steps: int = 240  # evaluations in all | not tuned
    halvings: int = 12  # of a step along which the value does not fall | not tuned
    least_fall: float = 0.1  # of what the slope says, of a step that is taken | not tuned
    most_cuts: int = 7  # of moments that no law has | chosen on repayments (3: three of 46 fits refuted); decision 60
    least_entropy: float = 0.02  # nats, to which such moments are moved | not tuned
    refuted: float = 0.01  # of how far a value is below 0: less gain is the last before a cut | chosen on repayments
    restart: float = 0.7  # of the weights that refuted them | chosen on repayments, indices (.5: some unfinished)
    curvature_rows: int = 2_500  # by which the curvature is taken | not tuned; decision 63
    rows_a_feature: int = 8  # of these, at least | not tuned
    even_odds: float = 0.25  # of a row among these, whatever it leaves open | not tuned
    most_joint: int = 1_200  # weights and tilts whose curvature is kept whole | not tuned; decision 86
    products: int = 30  # with the curvature of more, for a step | not tuned; decision 86
    left_by_products: float = 0.01  # of a step's gain, at which they end | not tuned


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
    class_candidates: tuple[int, int] = (16, 256)  # of a told class: of very many, of few | not tuned; decision 65
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
TAILS = TailConstants()
VECTORS = VectorConstants()
PAIRS = PairConstants()
PAIR_TABLES = PairTableConstants()
CLASSES = ClassConstants()
CHAIN = ChainConstants()
LINKS = LinkConstants()
FIT = FitConstants()
PRIORS = PriorConstants()
PRIOR = PriorReleaseConstants()
DISTANCES = DistanceConstants()
SAMPLING = SamplingConstants()
QUESTIONS = QuestionConstants()
LEVELS = LevelConstants()
