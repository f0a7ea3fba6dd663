"""Items of PP-Stream: suite `stream`, measured stage by stage and simulated on more cores."""

from privet.research.papers.ppstream.accuracy import table_4, table_5
from privet.research.papers.ppstream.paillier import figure_1, figure_6
from privet.research.papers.ppstream.pipelines import figure_7, figure_8, figure_9, table_6, table_7
