package flood

import "math"

// polynomial tracks a node that is a polynomial of its argument: noise of the argument grows by the slope, and the
// evaluation adds its own.
func (b *bound) polynomial(index int) {
	node := b.network.Nodes[index]
	variance, reach := b.argument(index, 0)
	if b.plan.Arguments[index] {
		variance = b.refresh(index, false, variance)
	}
	if node.Reach > 0 {
		reach = node.Reach
	}
	step := b.product(b.plan.Argument[index])
	if node.Degree == 2 {
		b.reach[index] = reach*reach + math.Abs(node.Offset)
		b.variance[index] = 4*reach*reach*variance + step
		return
	}
	highest, steepest := extent(node.Coefficients)
	b.reach[index] = highest
	b.variance[index] = steepest*steepest*variance + evaluation(node.Coefficients)*step
}

// extent is what a Chebyshev series and its slope stay below on their interval.
//
// At cos(t) they are sum_k c_k cos(k t) and sum_k k c_k sin(k t) / sin(t), looked at in points that lie so close together
// that between them a polynomial of this degree is larger by less than a fiftieth (Ehlich and Zeller, 1964).
func extent(coefficients []float64) (highest, steepest float64) {
	const closeness = 8
	points := closeness * len(coefficients)
	for i := range points {
		t := math.Pi * (float64(i) + 0.5) / float64(points)
		value, slope := 0.0, 0.0
		for k, coefficient := range coefficients {
			value += coefficient * math.Cos(float64(k)*t)
			slope += float64(k) * coefficient * math.Sin(float64(k)*t)
		}
		highest, steepest = max(highest, math.Abs(value)), max(steepest, math.Abs(slope/math.Sin(t)))
	}
	between := math.Cos(math.Pi / 2 / closeness)
	return highest / between, steepest / between
}

// evaluation is the noise that Paterson and Stockmeyer's method adds to a Chebyshev series, in variances of one product.
//
// T_2k is 2 T_k^2 - 1, so that the noise of a power's square is four times its own deviation beside that of a product,
// doubled. It enters the sum with the coefficients of all higher terms, as they are in the quotient and in the remainder
// of a division by that power: no more than three times their magnitudes. Each of the sum's products adds its own.
func evaluation(coefficients []float64) float64 {
	const entries = 3
	degree := len(coefficients) - 1
	total, power := float64(degree), 0.0
	for k := 2; k <= degree; k *= 2 {
		power = 16*power + 4
		rest := 0.0
		for _, coefficient := range coefficients[k:] {
			rest += math.Abs(coefficient)
		}
		total += power * entries * entries * rest * rest
	}
	return total
}
