package flood

import (
	"math"

	"privet/ckks/internal/network"
)

// noise bounds the noise of a value, whatever correlates in it: the variance of any one slot, and the spread, the largest
// variance of any combination of slots whose squared weights sum to 1 (the largest eigenvalue of the covariance). Of independent
// errors both are the same; of n slots that have the same error the spread is n times the variance.
type noise struct{ slot, spread float64 }

// white is noise of independent errors of a variance.
func white(variance float64) noise { return noise{variance, variance} }

// with adds independent errors.
func (n noise) with(variance float64) noise { return n.and(white(variance)) }

// and adds noise that is independent.
func (n noise) and(other noise) noise { return noise{n.slot + other.slot, n.spread + other.spread} }

// plus adds noise that can have the same causes: deviations add up, not variances.
func (n noise) plus(other noise) noise {
	sum := func(a, b float64) float64 { return (math.Sqrt(a) + math.Sqrt(b)) * (math.Sqrt(a) + math.Sqrt(b)) }
	return noise{sum(n.slot, other.slot), sum(n.spread, other.spread)}
}

// times multiplies each slot by a number of at most a magnitude.
func (n noise) times(magnitude float64) noise {
	return noise{magnitude * magnitude * n.slot, magnitude * magnitude * n.spread}
}

// through is what a matrix makes of noise. The variance of a result is at most the spread times the squared norm of its row, and at
// most what the deviations of one slot give if all add up. The spread grows by the squared norm of the matrix, at most the
// largest row sum times the largest column sum (Schur's test), which holds for whichever copies of a repeated value are read.
func (n noise) through(m size) noise {
	return noise{min(m.squares*n.spread, m.row*m.row*n.slot), m.row * m.column * n.spread}
}

// size has a matrix's largest sum of squares in a row, and its largest sums of magnitudes in a row and in a column.
type size struct{ squares, row, column float64 }

func measure(m *network.Matrix) size {
	made, columns := size{}, make([]float64, m.Columns)
	for row := range m.Rows {
		square, sum := 0.0, 0.0
		for at := m.Start[row]; at < m.Start[row+1]; at++ {
			value := m.Value[at]
			square += value * value
			sum += math.Abs(value)
			columns[m.Column[at]] += math.Abs(value)
		}
		made.squares, made.row = max(made.squares, square), max(made.row, sum)
	}
	for _, sum := range columns {
		made.column = max(made.column, sum)
	}
	return made
}
