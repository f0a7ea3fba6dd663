"""Items of PP-Stream: suite `stream`, measured stage by stage and simulated on more cores."""

from privet.research.papers.ppstream.accuracy import table_4, table_5
from privet.research.papers.ppstream.allocation import figure_7
from privet.research.papers.ppstream.latency import figure_8, table_6, table_7
from privet.research.papers.ppstream.paillier import figure_1
from privet.research.papers.ppstream.partition import figure_9
from privet.research.papers.ppstream.scaling import figure_6

RUNNERS = {
    "figure-1": figure_1,
    "table-4": table_4,
    "table-5": table_5,
    "figure-6": figure_6,
    "figure-7": figure_7,
    "figure-8": figure_8,
    "figure-9": figure_9,
    "table-6": table_6,
    "table-7": table_7,
}
