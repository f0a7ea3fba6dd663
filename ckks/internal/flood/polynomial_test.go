package flood

import (
	"math"
	"testing"
)

// TestExtentsHoldBetweenThePoints compares with a fine grid, for polynomials that are largest and steepest at the ends.
func TestExtentsHoldBetweenThePoints(t *testing.T) {
	for _, coefficients := range [][]float64{
		{0.5, 1}, {0, 0, 0, 0, 0, 0, 0, 1}, {0.1, -0.7, 0.3, 0.2, -0.25, 0.01, 0.4, 0.03},
	} {
		highest, steepest := extent(coefficients)
		tallest, steep, last := 0.0, 0.0, math.NaN()
		const steps = 20000
		for i := range steps + 1 {
			x := -1 + 2*float64(i)/steps
			value := 0.0
			for k, coefficient := range coefficients {
				value += coefficient * math.Cos(float64(k)*math.Acos(x))
			}
			tallest = max(tallest, math.Abs(value))
			if i > 0 {
				steep = max(steep, math.Abs(value-last)*steps/2)
			}
			last = value
		}
		if highest < tallest || highest > 1.03*tallest || steepest < steep || steepest > 1.03*steep {
			t.Errorf("%v: %v and %v, measured %v and %v", coefficients, highest, steepest, tallest, steep)
		}
	}
}
