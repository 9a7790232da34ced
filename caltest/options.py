"""Options of the command line, defined once: here.

A command's options are written as a text that reads like its help. An entry is ``name TAKES  help``; a
line of names alone stands for entries shared by several commands. Between name and help may follow

``name/argument``
    the argument's name in Python, if it differs,
``TAKES…``
    the option may be repeated, once for each value; ``-`` takes none, and a name in capitals is
    positional,
``=value``
    the value if the option is not given; in other cases the help says what applies,
``typed``
    a configuration file may not set it,
``harmless``
    it cannot change the exit status of an audit, wherever it is set.

After ``|`` in the brackets of the help, and not shown there, are a few words for the value that applies
if the option is not given.

Values are checked like the argument of that name (`caltest._arguments.KINDS`, or the function that
takes it).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_SHARED = """
FILE Any… typed  CSV, Parquet, Arrow, JSON lines, NPZ or NPY, a directory of tables, or a pattern such
    as 'part-*.parquet'; also s3:// and other URLs. A column of probabilities per class, and one of
    labels. Or logs, also several, of lm-evaluation-harness or inspect.
label COL  The column of labels, or of outcomes that are numbers.
    [default: label, y, y_true, target or class | found by its name]
columns COLS  The columns of probabilities, separated by commas.
    [default: all but the label and the groups | all others]
mean COL  If normal distributions of numbers were predicted: the column of means; with --sd, --variance.
sd COL  The column of its standard deviation.
variance COL  The column of its variance.
quantiles COLS  If quantiles of a number were predicted: their columns and levels, low=0.05,high=0.95;
    or a pattern whose star is the level, 'q*' for q0.05, 'model-*' for model-lo-90 and others.
members PREFIX  If members of an ensemble, or draws, were predicted: what their columns are called
    before the number, sample_ for sample_0 and others.
point COL  If one number was predicted: its column.
functional NAME  What it forecasts: mean, median, or with a level quantile:0.9 or expectile:0.7.
    [default: mean]
low FLOAT  The smallest number that an outcome can be, 0 for amounts. (--lower is a column, of
    intervals.) [default: not known]
high FLOAT  The largest, 100 for percent. [default: not known]
symmetric -  Outcomes of every row are symmetric about their mean.
unit TEXT harmless  What a unit of the outcome is called, such as EUR.
sets PREFIX  If prediction sets were predicted: what columns of 1 and 0 are called before the class, in_
    for in_cat and others; or the one column of lists, such as cat|dog. With --level.
lower COL  If intervals were predicted: the column of lower ends; with --upper and --level.
upper COL  The column of their upper ends.
level TEXT  How often sets or intervals claim to hold the outcome: 0.9, or a column.
claims NAMES  What they claim besides coverage of all rows: size, class, groups, features, separated by
    commas. [default: nothing; the others are shown, and enter neither p nor verdict]
calibration-rows INT  Rows by which a split conformal method set its threshold: p allows for their
    chance. [default: coverage of these very sets is tested]
truth PATH  If FILE is the long table of a forecast hub: that of what was observed, with the tasks too.
where COL=VALUE…  Which rows of such a table are read: output_type=quantile; once for each column.
time COL  If times until an event were predicted: the column of those seen; with --event, --survival-at.
survival-at TIME=COL…  The column of the predicted chance of no event until a time, 365=s365; once for
    each time, or a name with a star for the time, 's*'.
incidence PATTERN  If kinds of event compete: the columns of the predicted chance of each by each time,
    'cif_*' for cif_relapse_365 and others; --event then names which one came, or 0.
event COL  The column that says whether the event came at the time: 1, or 0 where the row was censored.
follow-up COL  The column of the time until which a row was followed, or would have been.
time-unit TEXT harmless  The unit of times, such as days: results then state a 365-day risk.
interpolation NAME  Between two times of the curves: linear, or step where events come at these times
    only. [default: by when events came]
scale TEXT  What probabilities are out of, 100 for percent; or words, of labels too, low=0.3,good=1.
skip-missing -  Leave out, and count, rows without a prediction or an outcome, such as refusals.
logits -  The columns hold logits: their softmax is taken; of a single one, the logistic function.
group COL…  A column of groups, for caltest audit; ignored here. Give it once for each column.
feature/features COL…  A column known before the outcome, in which errors are searched for where nobody
    has named the groups; once for each column.
features PATTERN…  All other columns so called: 'x_*', or '*' with --columns; '!id' leaves one out.
order COL  The column of times, for the statistics runs, decay and autocorrelation.
weights COL  The column of weights.
clusters COL  The column of clusters, such as patient: rows with the same entry may be dependent.
blocks TEXT  Clusters are blocks of time, and --clusters names a column of dates or times: how long a
    block is, such as 12h, 7d, 4w or 1mo. [default: every entry is a cluster]
sampling-rate/sampling_rates CLASS=RATE…  The share of rows kept of a class, 0=0.01; once for each.
lens NAME  A view of the predictions: see caltest list lenses.
intersections INT  How many group columns are crossed at most: 1, 2 or 3. [default: 2]
materiality FLOAT  The average error that matters, 0.02 for 2 points. [default: none]
materiality-low FLOAT  The same of predictions that are too low: they matter from there on. Alone, those
    too high do not matter; a side of 0 is a promise of "at most".
materiality-high FLOAT  The same of predictions that are too high; 0 is a promise of "at least".
materiality-ratio FLOAT  The same as a ratio of predicted to observed, 1.25, for rare events; with
    both, the wider one counts.
min-rows INT  Groups with fewer rows are named, not looked at. [default: 50]
seed/rng INT  Seed that makes the result reproducible. [default: random]
verbose -  Print details too, such as the options of a statistic.
json -  Print JSON instead of text.
plot FILE  Also draw the result: .png, .pdf or .svg.
jobs/n_jobs INT =-1  Cores to use; -1 is all of them.
example NAME typed  Bundled predictions instead of FILE, for instance digits:naive_bayes.
"""

_TEXTS = {
    "audit": """
FILE label columns scale skip-missing mean sd variance quantiles members truth where
point functional low high symmetric unit sets lower upper level claims calibration-rows
time survival-at incidence follow-up interpolation time-unit logits
group COL…  A column whose values group the rows; give it once for each column.
feature features order weights clusters blocks sampling-rate intersections
event TEXT harmless  What class 1 of two classes is called. With --time: the column that is 1 if the
    event came, and 0 if the row was censored. [default: the name of its column]
materiality FLOAT  The average error that matters, 0.02 for 2 points; with --point in units of the
    outcome. [default: none]
materiality-low materiality-high materiality-ratio
lens/lenses NAME…  A view of the predictions, see caltest list lenses; once for each.
    [default: those that suit what is predicted | several]
statistic/statistics NAME…  What is computed in every view, see caltest list statistics; once for each.
    [default: skce_uq, ecd, ks and citl, where they fit; with a tolerance, scan | several]
alpha FLOAT  Level of all findings together. [default: 0.05]
tolerance FLOAT  An error that is allowed anywhere, 0.02 for 2 points. [default: none]
rounding FLOAT  The step of stated probabilities, 0.05 for 0%, 5%, …. [default: none]
correction NAME  For the number of checks: see caltest list corrections.
    [default: westfall_young; with a tolerance, holm]
guaranteed -  Use exact bounds alone; in clusters an error then counts as found only if the exact
    interval of its mean excludes 0, where otherwise some intervals are approximate.
min-rows
resamples/n_resamples INT  Draws of labels. [default: 999]
seed
report FILE harmless  Write the report: one .html file, or - for standard output.
markdown FILE harmless  Write a short report: .md, or -.
json FILE harmless  Write all numbers: .json, or -.
junit FILE harmless  Write every check as a test case for CI: .xml, or -.
title TEXT harmless  What the report is about. [default: the name of the file]
date TEXT harmless  The date in the report. [default: today]
fail-on NAME  When the exit status is 1: material, likely (or material), undecided (or these), found
    (any error) or never. [default: likely if there is a limit, else found | found]
config FILE typed  Options from this file. [default: pyproject.toml, if it has [tool.caltest]]
jobs/n_jobs INT harmless  Cores to use; -1 is all of them. [default: -1]
example
""",
    "test": """
FILE label columns scale skip-missing mean sd variance quantiles members truth where time event
point functional low high symmetric sets lower upper level claims calibration-rows
survival-at incidence follow-up interpolation logits group feature features order weights clusters
blocks sampling-rate
statistic NAME  What is computed: see caltest list statistics.
    [default: omnibus; with a null other than monte_carlo, skce_uq; with a tolerance, scan]
null NAME  Where the p-value comes from: see caltest list nulls.
    [default: monte_carlo; with clusters, cluster_signs]
lens
approximation NAME  Take the kernel of skce_uq, skce_b or jkce of low rank: nystrom, fourier, or auto
    for many rows only; exact too, and its cost grows as the rows. [default: none]
rank INT  Columns of the approximation. [default: 256]
alternative NAME  greater, less or two-sided; with a tolerance over, under or two-sided.
    [default: the statistic's own]
tolerance FLOAT  Test whether the model is anywhere wrong by more than this, 0.02 for 2 points.
rounding FLOAT  The step to which probabilities were rounded, 0.05 for 0%, 5%, … 100%; more than two
    classes need a lens of one probability.
alpha FLOAT =0.05  Significance level: the highest p-value that counts as a finding.
resamples/n_resamples INT =999  Simulated label sets, where the null needs them.
seed verbose json jobs example
""",
    "estimate": """
FILE label columns scale skip-missing mean sd variance quantiles members truth where time event
point functional low high symmetric survival-at incidence follow-up interpolation logits
group weights clusters blocks sampling-rate
statistic NAME =skce_uq  What is computed: see caltest list statistics.
lens json jobs example
""",
    "estimate-error": """
FILE label columns scale logits group lens
functions NAMES =all  Estimators, separated by commas, see caltest list functions; all: those that suit.
pvalue NAME =held_out  held_out: from the test rows, exact; or none.
resamples/n_resamples INT  Draws of labels. [default: 999]
test-size FLOAT =0.2  Share of the rows held out for the estimate.
folds/n_folds INT =5  Folds of the other rows, to fit and tune.
regularization-scaling NAME =usual  Of the kernel ridge regressions: usual or published.
seed json jobs example
""",
    "compare": """
FILES FILE… typed  Two files or more, of the same rows in the same order; or one, with a column of
    P(class 1) for each model (--columns before,after), or of point forecasts (--point before,after).
label columns scale mean sd variance quantiles members truth where
point functional low high symmetric time event survival-at incidence follow-up interpolation logits
group COL…  A column whose values group the rows, for errors in groups too; once for each column.
weights clusters blocks sampling-rate
intersections
statistic NAME  One whose value is shown for each model: see caltest list statistics. [default: none]
lens
report FILE  Also write a page with the picture and all that is said: one .html file.
json plot
example NAME  Bundled predictions instead of files: digits, by all models.
""",
    "bounds": """
FILE label columns scale logits group lens
confidence FLOAT =0.95  Confidence for all statements of one kind at once.
resamples/n_resamples INT  Simulated label sets. [default: 499, more if there are many bounds]
seed json plot jobs example
""",
    "power": """
FILE label columns scale logits group weights
n INT…  Rows of a data set; give it once for each size. [default: find how many are needed]
sample-size -  Find how many rows one test needs to find the assumed error with the wanted power, as
    without --n. (How many show that errors are within a limit is another question, of caltest plan.)
temperature FLOAT  Assume logits divided by this: overconfident below 1, underconfident above.
bias FLOAT  Assume that the log-odds of --target are this much too high.
target CLASS  The class of --bias. [default: class 1 of two]
overconfidence FLOAT  Assume that the confidence in the top class is too high, 0.05: by 5 points.
statistic NAME  What is computed: see caltest list statistics. [default: that of caltest test]
null NAME  Where the p-value comes from: see caltest list nulls. [default: monte_carlo]
lens
alternative NAME  As of caltest test. [default: the statistic's own]
tolerance FLOAT  Test whether the model is wrong by more than this.
alpha FLOAT =0.05  Level of the test.
power FLOAT  Power wanted, with --sample-size. [default: 0.8]
min-n INT  Fewest rows, with --sample-size. [default: 50]
max-n INT  Most rows, with --sample-size. [default: 20000]
under-null -  Count rejections of calibrated models of that size too.
datasets/n_datasets INT  Simulated data sets per size. [default: 400, with --sample-size at most 200]
resamples/n_resamples INT  Draws of the null in each test. [default: 199 for one side at level 0.05]
seed json plot jobs example
""",
    "plan": """
FILE label columns scale logits
group COL…  A column whose values will group the rows; give it once for each column.
weights clusters blocks intersections materiality materiality-low materiality-high materiality-ratio
n INT  Rows of the audit, to find the probability that they suffice. [default: find how many do]
error FLOAT  How wrong the mean of every view is in truth, 0.005 for half a point. [default: 0]
power FLOAT  Probability wanted that all errors are shown to be within the limit. [default: 0.8]
alpha FLOAT =0.05  Level of the audit.
lens/lenses NAME…  A view of the predictions, see caltest list lenses; once for each.
    [default: canonical, top_label and classwise; canonical for two classes]
min-rows json example
""",
    "sbc": """
FILES FILE… typed  A table with a row for each simulation: a parameter in the column of its name, and
    its draws in columns of that name and a number, mu_0, mu_1 and so on. Or one .npz file with arrays
    parameters, (N, D), and draws, (L, N, D); or two .npy files, in this order.
names COLS  The parameters, separated by commas; for arrays, in the order of their columns.
    [default: for arrays 0, 1, …]
materiality FLOAT  The error of coverage that matters, 0.02 for 2 points. [default: no limit]
materiality-low materiality-high alpha resamples seed report markdown json junit title date fail-on jobs
""",
    "monitor": """
STATE FILE typed  The state, one JSON file: it is made if it is not there, and goes on if it is.
FILES FILE… typed  Batches of rows with their outcomes, in the order of their predictions.
label columns scale skip-missing mean sd variance quantiles members
point functional low high symmetric time event survival-at incidence follow-up interpolation logits
group COL…  A column whose values group the rows; give it once for each column. Values stay as they are.
clusters
id/ids COL  A column of names of rows, if outcomes come late: rows whose label is empty wait, and a
    later file may hold names and labels alone.
batch NAME  A name by which a batch is known if it comes again; for one FILE. [default: its content]
date TEXT  When its rows were predicted.
date-column COL  A column of the dates when rows were predicted, which are in their order.
alpha FLOAT  Probability that a calibrated model ever raises an alarm. Like the next six, it is kept
    in STATE, and may be left out from then on. [default: 0.05]
mode NAME  ever, or change: for a model that may be good for years. [default: ever]
mean-run-length FLOAT  Mean rows or clusters to a false alarm, with --mode change. [default: 10000]
tolerance FLOAT  An error that every probability may have, 0.02 for 2 points. [default: 0]
lens NAME  What is looked at: top_label, class:3 or others. [default: all that is predicted]
statistic NAME  Bets on the scores of rows of one: brier, log_score, spiegelhalter, ecd; or citl.
    [default: on all that can be learned]
model TEXT  Name and version of the model: a state is of one. [default: none]
report FILE  Also write a page with the path of the evidence: one .html file.
json plot
""",
}

#: The sections of a command's help and their options; options not listed go under "Question".
SECTIONS = {
    "Input": "FILE FILES STATE label columns mean sd variance quantiles members point functional "
    "low high symmetric unit sets lower upper level claims calibration-rows truth where time event "
    "survival-at incidence follow-up interpolation time-unit scale skip-missing logits group feature "
    "features weights clusters blocks sampling-rate id batch monitor:date example",
    "Question": "",
    "Output": "report markdown json junit plot verbose title date fail-on help",
    "Advanced": "correction guaranteed rounding null alternative approximation rank functions pvalue "
    "test-size folds regularization-scaling resamples datasets min-n max-n seed config jobs",
}

_TYPES: Mapping[str, type] = {"-": bool, "INT": int, "FLOAT": float}


@dataclass(frozen=True)
class Option:
    """An option of a command.

    Attributes
    ----------
    name
        Its name as typed, without dashes; in capitals if it is positional.
    argument
        Its name in Python.
    takes
        The kind of value shown in the help: "INT", "COL", …
    several
        Whether it may be repeated, once for each value.
    default
        The value if it is not given; None: see the help.
    help
        Its description, and the default.
    usual
        The default, in a few words.
    typed, harmless
        Whether configuration may not set it, and whether it cannot change an audit's exit status.
    """

    name: str
    argument: str
    takes: str
    several: bool
    default: Any
    help: str
    usual: str
    typed: bool
    harmless: bool

    @property
    def type(self) -> type:
        """The type of one value."""
        return _TYPES.get(self.takes, str)


def _parsed(text: str, shared: Mapping[str, Option]) -> Iterator[Option]:
    for entry in re.split(r"\n(?=\S)", text.strip()):
        head, _, words = re.sub(r"\n +", " ", entry).partition("  ")
        if not words:
            yield from (shared[name] for name in head.split())
            continue
        name, takes, *more = head.split()
        flag, _, argument = name.partition("/")
        default = next((each[1:] for each in more if each[0] == "="), None)
        words += "" if default is None else f" [default: {default}]"
        usual = re.search(r" \| ([^]]+)|\[default: (\w[\w.]*)[];]", words)
        yield Option(
            name=flag,
            argument=argument or flag.lower().replace("-", "_"),
            takes=takes.removesuffix("…"),
            several=takes.endswith("…"),
            default=False if takes == "-" else default and _TYPES.get(takes, str)(default),
            help=re.sub(r" \| [^]]+", "", words).replace(" [default", "  [default"),
            usual=usual[1] or usual[2] if usual else "False" if takes == "-" else "none",
            typed="typed" in more,
            harmless="harmless" in more,
        )


_BY_NAME = {each.name: each for each in _parsed(_SHARED, {})}
_OF_AUDITS = _BY_NAME | {each.name: each for each in _parsed(_TEXTS["audit"], _BY_NAME)}
#: The options of every command, by name, in the order of the help.
COMMANDS: Mapping[str, Mapping[str, Option]] = {
    command: {each.name: each for each in _parsed(text, _OF_AUDITS if command == "sbc" else _BY_NAME)}
    for command, text in _TEXTS.items()
}
