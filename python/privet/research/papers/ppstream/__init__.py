"""Items of PP-Stream: suite `stream`, measured stage by stage and simulated on more cores."""

from privet.research.papers.ppstream.accuracy import table_4, table_5
from privet.research.papers.ppstream.paillier import figure_1, figure_6
from privet.research.papers.ppstream.pipelines import figure_7, figure_8, figure_9, table_6, table_7

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
